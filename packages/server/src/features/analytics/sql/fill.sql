-- Counts a portion of what existed before analytics (migrations/0026, 0034): users, conversations, edits and deletions,
-- pushes, and then messages with their files. Each portion is one transaction that also stores its position, and reads
-- about p_most rows, so it takes no longer in a large store than in a small one. Returns true while there is more.
-- Message texts are not read: a message without attachments counts as text.
CREATE OR REPLACE FUNCTION fill_analytics(p_most int) RETURNS boolean LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  f analytics_fill;
  to_conv bigint; -- the end of the portion; null: the stage is over
  to_seq bigint := 0;
  environments_at_once CONSTANT int := 50;
BEGIN
  PERFORM pg_advisory_xact_lock(7041886);
  SELECT * INTO f FROM analytics_fill;
  IF f.one IS NULL OR f.finished_at IS NOT NULL THEN RETURN false; END IF;
  IF f.cut IS NULL THEN
    UPDATE analytics_fill SET cut = clock_timestamp(), cut_xid = pg_current_xact_id();
    RETURN true;
  END IF;
  IF pg_snapshot_xmin(pg_current_snapshot()) <= f.cut_xid THEN RETURN true; END IF;

  IF f.stage = 0 THEN
    to_conv := (SELECT max(x.no) FROM (SELECT no FROM users WHERE no > f.conv ORDER BY no LIMIT p_most) x);
    PERFORM add_counts(array_agg(x.env), array_agg(x.at), array_agg(jsonb_build_object('newUsers', x.n)), NULL) FROM (
      SELECT env, date_trunc('hour', created_at, 'UTC') AS at, count(*) AS n
      FROM users WHERE no > f.conv AND no <= to_conv AND created_at < f.cut GROUP BY 1, 2) x;
    PERFORM fold_active(array_agg(env), array_agg(last_seen_at), array_agg(no))
      FROM users WHERE no > f.conv AND no <= to_conv AND last_seen_at < f.cut;
  ELSIF f.stage = 1 THEN
    to_conv := (SELECT max(x.no) FROM (SELECT no FROM conversations WHERE no > f.conv ORDER BY no LIMIT p_most) x);
    PERFORM add_counts(array_agg(x.env), array_agg(x.at), array_agg(jsonb_build_object('conversations', x.n)), NULL) FROM (
      SELECT env, date_trunc('hour', created_at, 'UTC') AS at, count(*) AS n
      FROM conversations WHERE no > f.conv AND no <= to_conv AND created_at < f.cut GROUP BY 1, 2) x;
  ELSIF f.stage = 2 THEN
    SELECT x.conv, x.seq INTO to_conv, to_seq FROM (
      SELECT conv, seq FROM events WHERE (conv, seq) > (f.conv, f.seq) ORDER BY conv, seq LIMIT p_most) x ORDER BY 1 DESC, 2 DESC LIMIT 1;
    PERFORM add_counts(array_agg(x.env), array_agg(x.at), array_agg(jsonb_build_object(x.name, x.n)), NULL) FROM (
      -- Of the events of a message's deletion the first counts: it has the time of the message.
      SELECT e.env, date_trunc('hour', e.created_at, 'UTC') AS at, CASE e.type WHEN 'message.updated' THEN 'edits' ELSE 'deletions' END AS name, count(*) AS n
      FROM events e WHERE (e.conv, e.seq) > (f.conv, f.seq) AND (e.conv, e.seq) <= (to_conv, to_seq)
        AND e.created_at < f.cut AND (e.type = 'message.updated' OR e.type = 'message.deleted' AND EXISTS (
          SELECT 1 FROM messages m WHERE m.env = e.env AND m.conv = e.conv AND m.seq = e.message AND m.deleted_at = e.created_at)) GROUP BY 1, 2, 3) x;
  ELSIF f.stage = 3 THEN
    -- A row for each environment, day and name.
    IF EXISTS (SELECT 1 FROM usage_counters WHERE env > f.conv) THEN to_conv := f.conv + environments_at_once; END IF;
    PERFORM add_counts(array_agg(env), array_agg(day::timestamp AT TIME ZONE 'UTC'), array_agg(jsonb_build_object(name, n)), NULL)
      FROM usage_counters WHERE env > f.conv AND env <= to_conv;
  ELSE
    SELECT x.conv, x.seq INTO to_conv, to_seq FROM (
      SELECT conv, seq FROM messages WHERE (conv, seq) > (f.conv, f.seq) ORDER BY conv, seq LIMIT p_most) x ORDER BY 1 DESC, 2 DESC LIMIT 1;
    PERFORM fold_messages(array_agg(g.env), array_agg(g.hour), array_agg(g.conv), array_agg(g.sender), array_agg(g.n), array_agg(g.last),
        array_agg(g.files), array_agg(0::bigint), array_agg(g.replies))
      FROM (
        SELECT m.env, date_trunc('hour', m.created_at, 'UTC') AS hour, m.conv, m.sender, count(*) AS n, max(m.created_at) AS last,
          count(m.attachments) AS files, count(m.reply_to) AS replies
        FROM messages m WHERE (m.conv, m.seq) > (f.conv, f.seq) AND (m.conv, m.seq) <= (to_conv, to_seq) AND m.created_at < f.cut GROUP BY 1, 2, 3, 4
      ) g;
    PERFORM add_counts(array_agg(x.env), array_agg(x.at), array_agg(jsonb_build_object('attachments', x.n, 'attachmentBytes', x.bytes)), NULL) FROM (
      SELECT m.env, date_trunc('hour', m.created_at, 'UTC') AS at, count(*) AS n, sum(a.size) AS bytes
      FROM messages m CROSS JOIN LATERAL (SELECT size FROM attachments a WHERE a.env = m.env AND a.conv = m.conv AND a.message = m.seq) a
      WHERE (m.conv, m.seq) > (f.conv, f.seq) AND (m.conv, m.seq) <= (to_conv, to_seq) AND m.created_at < f.cut GROUP BY 1, 2) x;
    UPDATE analytics_fill SET done = done + (
      SELECT count(*) FROM messages WHERE (conv, seq) > (f.conv, f.seq) AND (conv, seq) <= (to_conv, to_seq));
    IF to_conv IS NULL THEN
      UPDATE analytics_fill SET finished_at = clock_timestamp();
      RETURN false;
    END IF;
  END IF;
  UPDATE analytics_fill SET conv = coalesce(to_conv, 0), seq = CASE WHEN to_conv IS NULL THEN 0 ELSE to_seq END,
    stage = CASE WHEN to_conv IS NULL THEN f.stage + 1 ELSE f.stage END;
  RETURN true;
END $$;
