-- Counts a portion of what existed before analytics (migrations/0026): users, conversations, edits, deletions and
-- pushes first, then messages in the order of their rows. Each portion is one transaction that also stores its
-- position. Returns true while there is more. Message texts are not read: a message without attachments counts as
-- text.
CREATE OR REPLACE FUNCTION fill_analytics(p_most int) RETURNS boolean LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  f analytics_fill;
  m_env int[];
  m_at timestamptz[];
  m_conv bigint[];
  m_usr bigint[];
  m_kind int[];
  a_env int[];
  a_at timestamptz[];
  a_usr bigint[];
  n_env int[];
  n_at timestamptz[];
  n_counts jsonb[];
BEGIN
  PERFORM pg_advisory_xact_lock(7041886);
  SELECT * INTO f FROM analytics_fill;
  IF f.one IS NULL OR f.finished_at IS NOT NULL THEN RETURN false; END IF;
  IF f.cut IS NULL THEN
    UPDATE analytics_fill SET cut = clock_timestamp(), cut_xid = pg_current_xact_id();
    RETURN true;
  END IF;
  IF pg_snapshot_xmin(pg_current_snapshot()) <= f.cut_xid THEN RETURN true; END IF;

  IF NOT f.others THEN
    SELECT array_agg(x.env), array_agg(x.at), array_agg(x.counts) INTO n_env, n_at, n_counts FROM (
      SELECT env, date_trunc('hour', created_at, 'UTC') AS at, jsonb_build_object('newUsers', count(*)) AS counts
        FROM users WHERE created_at < f.cut GROUP BY 1, 2
      UNION ALL SELECT env, date_trunc('hour', created_at, 'UTC'), jsonb_build_object('conversations', count(*))
        FROM conversations WHERE created_at < f.cut GROUP BY 1, 2
      UNION ALL SELECT env, date_trunc('hour', created_at, 'UTC'), jsonb_build_object('edits', count(*) FILTER (WHERE type = 'message.updated'),
          'deletions', count(*) FILTER (WHERE type = 'message.deleted'))
        FROM events WHERE created_at < f.cut AND type IN ('message.updated', 'message.deleted') GROUP BY 1, 2
      UNION ALL SELECT a.env, date_trunc('hour', m.created_at, 'UTC'), jsonb_build_object('attachments', count(*), 'attachmentBytes', sum(a.size))
        FROM attachments a JOIN messages m ON m.conv = a.conv AND m.seq = a.message AND m.env = a.env WHERE m.created_at < f.cut GROUP BY 1, 2
      UNION ALL SELECT env, day::timestamp AT TIME ZONE 'UTC', jsonb_build_object(name, n) FROM usage_counters
    ) x;
    SELECT array_agg(u.env), array_agg(u.last_seen_at), array_agg(u.no) INTO a_env, a_at, a_usr FROM users u WHERE u.last_seen_at < f.cut;
    PERFORM fold_activity('{}', '{}', '{}', '{}', '{}', a_env, a_at, a_usr, n_env, n_at, n_counts);
    UPDATE analytics_fill SET others = true;
    RETURN true;
  END IF;

  WITH portion AS MATERIALIZED (
    SELECT m.env, m.created_at, m.conv, m.seq, m.sender,
      (m.attachments IS NOT NULL)::int + 4 * (m.reply_to IS NOT NULL)::int AS kind
    FROM messages m WHERE (m.conv, m.seq) > (f.conv, f.seq) ORDER BY m.conv, m.seq LIMIT p_most
  ), place AS (
    UPDATE analytics_fill g SET done = g.done + l.n, conv = l.conv, seq = l.seq
    FROM (SELECT p.conv, p.seq, (SELECT count(*) FROM portion) AS n FROM portion p ORDER BY p.conv DESC, p.seq DESC LIMIT 1) l
  )
  SELECT array_agg(p.env), array_agg(p.created_at), array_agg(p.conv), array_agg(p.sender), array_agg(p.kind)
  INTO m_env, m_at, m_conv, m_usr, m_kind FROM portion p WHERE p.created_at < f.cut;
  PERFORM fold_activity(m_env, m_at, m_conv, m_usr, m_kind, '{}', '{}', '{}', '{}', '{}', '{}');
  IF NOT EXISTS (SELECT 1 FROM messages m, analytics_fill g WHERE (m.conv, m.seq) > (g.conv, g.seq)) THEN
    UPDATE analytics_fill SET finished_at = clock_timestamp();
    RETURN false;
  END IF;
  RETURN true;
END $$;
