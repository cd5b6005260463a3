-- Adds counts by name. Names that begin with `peak` are maxima.
CREATE OR REPLACE FUNCTION merged_counts(a jsonb, b jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(jsonb_object_agg(x.key, x.n), '{}') FROM (
    SELECT key, CASE WHEN key LIKE 'peak%' THEN max(value::numeric) ELSE sum(value::numeric) END AS n
    FROM (SELECT * FROM jsonb_each_text(a) UNION ALL SELECT * FROM jsonb_each_text(b)) u GROUP BY key
  ) x
$$;

-- Adds counts to the hours and days in which they happened, or only to those of the given step. The order is always
-- the same, so that two calls cannot deadlock.
CREATE OR REPLACE FUNCTION add_counts(p_env int[], p_at timestamptz[], p_counts jsonb[], p_step int[]) RETURNS void LANGUAGE sql AS $$
  INSERT INTO counters AS c (env, step, at, counts)
  SELECT x.env, x.step, x.at, jsonb_object_agg(x.name, x.n) FROM (
    SELECT u.env, s.step, date_trunc(s.unit, u.at, 'UTC') AS at, e.key AS name,
      CASE WHEN e.key LIKE 'peak%' THEN max(e.value::numeric) ELSE sum(e.value::numeric) END AS n
    FROM unnest(p_env, p_at, p_counts, p_step) AS u(env, at, counts, step)
      JOIN (VALUES (0, 'hour'), (1, 'day')) s(step, unit) ON u.step IS NULL OR u.step = s.step CROSS JOIN jsonb_each_text(u.counts) e
    GROUP BY 1, 2, 3, 4
  ) x GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
  ON CONFLICT (env, step, at) DO UPDATE SET counts = merged_counts(c.counts, excluded.counts)
$$;

-- Keeps the 100 largest of the present entries and those that have just grown.
CREATE OR REPLACE FUNCTION merged_top(p_nos bigint[], p_messages bigint[], p_more bigint[], p_of_more bigint[], OUT nos bigint[], OUT messages bigint[])
LANGUAGE sql IMMUTABLE AS $$
  SELECT array_agg(t.no), array_agg(t.messages) FROM (
    SELECT no, max(messages) AS messages FROM (
      SELECT * FROM unnest(p_nos, p_messages) AS a(no, messages) UNION ALL SELECT * FROM unnest(p_more, p_of_more) AS b(no, messages)
    ) u GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 100
  ) t
$$;

-- Sets the bits of a chunk one by one, without a copy for each row of another table.
DO $$ BEGIN
  EXECUTE format('CREATE OR REPLACE AGGREGATE set_bits(int, int) (sfunc = set_bit, stype = bit, initcond = %L)', repeat('0', 8192));
END $$;

-- Marks users as active in the steps of the given hours, and returns how many became active, by step. Months are
-- those of active_months, whose rows are locked first.
CREATE OR REPLACE FUNCTION mark_active(p_env int[], p_hour timestamptz[], p_usr bigint[])
RETURNS TABLE (env int, step int, at timestamptz, came bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  INSERT INTO active_months (env, at, n)
    SELECT DISTINCT u.env, date_trunc('month', u.at, 'UTC'), 0 FROM unnest(p_env, p_hour) AS u(env, at) ORDER BY 1, 2 ON CONFLICT DO NOTHING;
  PERFORM 1 FROM (SELECT DISTINCT u.env, date_trunc('month', u.at, 'UTC') AS at FROM unnest(p_env, p_hour) AS u(env, at) ORDER BY 1, 2) u
    CROSS JOIN LATERAL (SELECT 1 FROM active_months m WHERE m.env = u.env AND m.at = u.at LIMIT 1 FOR NO KEY UPDATE) m;
  RETURN QUERY
  WITH chunk AS MATERIALIZED (
    SELECT u.env, s.step, date_trunc(s.unit, u.at, 'UTC') AS at, (u.usr >> 13)::int AS chunk, set_bits((u.usr & 8191)::int, 1)::bit(8192) AS bits
    FROM unnest(p_env, p_hour, p_usr) AS u(env, at, usr) CROSS JOIN (VALUES (0, 'hour'), (1, 'day'), (2, 'month')) s(step, unit)
    GROUP BY 1, 2, 3, 4
  ), merged AS MATERIALIZED (
    SELECT c.env, c.step, c.at, c.chunk, coalesce(a.bits | c.bits, c.bits) AS bits,
      coalesce(bit_count(a.bits | c.bits) - bit_count(a.bits), bit_count(c.bits)) AS came
    FROM chunk c LEFT JOIN LATERAL (
      SELECT bits FROM active_users a WHERE a.env = c.env AND a.step = c.step AND a.at = c.at AND a.chunk = c.chunk LIMIT 1
    ) a ON true
  ), kept AS (
    INSERT INTO active_users (env, step, at, chunk, bits) SELECT m.env, m.step, m.at, m.chunk, m.bits FROM merged m WHERE m.came > 0
    ON CONFLICT (env, step, at, chunk) DO UPDATE SET bits = excluded.bits
  ), month AS (
    -- By ctid: the row is locked, and no plan can scan the rows of other tenants.
    UPDATE active_months x SET n = x.n + m.came
    FROM (SELECT m.env, m.at, sum(m.came) AS came FROM merged m WHERE m.step = 2 AND m.came > 0 GROUP BY 1, 2) m
      CROSS JOIN LATERAL (SELECT a.ctid FROM active_months a WHERE a.env = m.env AND a.at = m.at LIMIT 1) p WHERE x.ctid = p.ctid
  )
  SELECT m.env, m.step, m.at, sum(m.came)::bigint FROM merged m WHERE m.came > 0 GROUP BY 1, 2, 3;
END $$;

-- Marks users as active at the given times, and counts those who became active.
CREATE OR REPLACE FUNCTION fold_active(p_env int[], p_at timestamptz[], p_usr bigint[]) RETURNS void LANGUAGE sql AS $$
  SELECT add_counts(array_agg(a.env), array_agg(a.at), array_agg(jsonb_build_object('activeUsers', a.came)), array_agg(a.step))
  FROM (
    SELECT array_agg(u.env) AS envs, array_agg(u.at) AS hours, array_agg(u.usr) AS users FROM (
      SELECT DISTINCT x.env, date_trunc('hour', x.at, 'UTC') AS at, x.usr FROM unnest(p_env, p_at, p_usr) AS x(env, at, usr) WHERE x.usr IS NOT NULL
    ) u
  ) active CROSS JOIN LATERAL mark_active(active.envs, active.hours, active.users) a WHERE a.step < 2
$$;

-- Adds messages and their senders to the tables of analytics: how many each sender sent in a conversation in an hour, of
-- these how many with attachments, with metadata alone and as replies, and when the last was sent. The caller holds the
-- advisory lock of analytics, because tops and chunks are read and then written.
CREATE OR REPLACE FUNCTION fold_messages(
  g_env int[], g_at timestamptz[], g_conv bigint[], g_usr bigint[], g_n bigint[], g_last timestamptz[],
  g_files bigint[], g_custom bigint[], g_replies bigint[]
) RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
  WITH grown AS (
    INSERT INTO conversation_activity AS c (env, step, at, conv, messages, senders, last_at)
    SELECT u.env, s.step, date_trunc(s.unit, u.at, 'UTC'), u.conv, sum(u.n), coalesce(array_agg(DISTINCT u.usr) FILTER (WHERE u.usr IS NOT NULL), '{}'), max(u.last)
    FROM unnest(g_env, g_at, g_conv, g_usr, g_n, g_last) AS u(env, at, conv, usr, n, last)
      CROSS JOIN (VALUES (0, 'hour'), (1, 'day'), (2, 'month')) s(step, unit) GROUP BY 1, 2, 3, 4
    ON CONFLICT (env, step, at, conv) DO UPDATE SET messages = c.messages + excluded.messages, last_at = greatest(c.last_at, excluded.last_at),
      senders = CASE WHEN excluded.senders <@ c.senders THEN c.senders ELSE ARRAY(SELECT DISTINCT x FROM unnest(c.senders || excluded.senders) x) END
    RETURNING env, step, at, conv AS no, messages
  ), more AS (
    SELECT g.env, g.step, g.at, array_agg(g.no) AS nos, array_agg(g.messages) AS messages FROM grown g GROUP BY 1, 2, 3
  )
  INSERT INTO activity_tops (env, step, at, kind, nos, messages)
  SELECT m.env, m.step, m.at, 'conversation', k.nos, k.messages FROM more m
    LEFT JOIN LATERAL (
      SELECT * FROM activity_tops t WHERE t.env = m.env AND t.step = m.step AND t.at = m.at AND t.kind = 'conversation' LIMIT 1
    ) t ON true
    CROSS JOIN LATERAL merged_top(t.nos, t.messages, m.nos, m.messages) k
  ON CONFLICT (env, step, at, kind) DO UPDATE SET nos = excluded.nos, messages = excluded.messages;

  WITH grown AS (
    INSERT INTO sender_activity AS c (env, step, at, usr, messages)
    SELECT u.env, s.step, date_trunc(s.unit, u.at, 'UTC'), u.usr, sum(u.n)
    FROM unnest(g_env, g_at, g_usr, g_n) AS u(env, at, usr, n)
      CROSS JOIN (VALUES (0, 'hour'), (1, 'day'), (2, 'month')) s(step, unit) WHERE u.usr IS NOT NULL GROUP BY 1, 2, 3, 4
    ON CONFLICT (env, step, at, usr) DO UPDATE SET messages = c.messages + excluded.messages
    RETURNING env, step, at, usr AS no, messages
  ), more AS (
    SELECT g.env, g.step, g.at, array_agg(g.no) AS nos, array_agg(g.messages) AS messages FROM grown g GROUP BY 1, 2, 3
  )
  INSERT INTO activity_tops (env, step, at, kind, nos, messages)
  SELECT m.env, m.step, m.at, 'sender', k.nos, k.messages FROM more m
    LEFT JOIN LATERAL (
      SELECT * FROM activity_tops t WHERE t.env = m.env AND t.step = m.step AND t.at = m.at AND t.kind = 'sender' LIMIT 1
    ) t ON true
    CROSS JOIN LATERAL merged_top(t.nos, t.messages, m.nos, m.messages) k
  ON CONFLICT (env, step, at, kind) DO UPDATE SET nos = excluded.nos, messages = excluded.messages;

  INSERT INTO message_hours AS h (env, at, messages)
  SELECT u.env, u.at, sum(u.n) FROM unnest(g_env, g_at, g_n) AS u(env, at, n) GROUP BY 1, 2 ORDER BY 1, 2
  ON CONFLICT (env, at) DO UPDATE SET messages = h.messages + excluded.messages;

  PERFORM add_counts(array_agg(x.env), array_agg(x.at), array_agg(x.counts), NULL) FROM (
    SELECT u.env, u.at, jsonb_build_object(
      'messages', sum(u.n),
      'textMessages', sum(u.n - u.files - u.custom),
      'attachmentMessages', sum(u.files),
      'customMessages', sum(u.custom),
      'replies', sum(u.replies),
      'systemMessages', coalesce(sum(u.n) FILTER (WHERE u.usr IS NULL), 0)) AS counts
    FROM unnest(g_env, g_at, g_usr, g_n, g_files, g_custom, g_replies) AS u(env, at, usr, n, files, custom, replies) GROUP BY 1, 2
  ) x;
  PERFORM fold_active(g_env, g_at, g_usr);
END $$;

-- The function of versions before migration 0034, which did all of it at once.
DROP FUNCTION IF EXISTS fold_activity(int[], timestamptz[], bigint[], bigint[], int[], int[], timestamptz[], bigint[], int[], timestamptz[], jsonb[]);
DROP FUNCTION IF EXISTS fold_messages(int[], timestamptz[], bigint[], bigint[], int[]);

-- Takes recorded notes of about p_most messages and counts them. Returns how many messages and other notes there were:
-- p_most or more means that more may be waiting. Only one process does it at a time.
CREATE OR REPLACE FUNCTION count_notes(p_most int) RETURNS int LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  tids tid[];
  taken int;
  -- What happened before the cut of migrations/0026 is counted from the existing rows.
  since timestamptz;
BEGIN
  PERFORM pg_advisory_xact_lock(7041886);
  IF EXISTS (SELECT 1 FROM analytics_fill WHERE cut IS NULL) THEN RETURN 0; END IF;
  since := coalesce((SELECT f.cut FROM analytics_fill f), '-infinity');
  SELECT array_agg(y.ctid), sum(y.size) INTO tids, taken FROM (
    SELECT x.ctid, x.size, sum(x.size) OVER (ROWS UNBOUNDED PRECEDING) - x.size AS before FROM (SELECT n.ctid, n.size FROM activity_notes n LIMIT p_most) x
  ) y WHERE y.before < p_most;
  IF tids IS NULL THEN RETURN 0; END IF;
  PERFORM fold_messages(array_agg(g.env), array_agg(g.hour), array_agg(g.conv), array_agg(g.usr), array_agg(g.n), array_agg(g.last),
      array_agg(g.files), array_agg(g.custom), array_agg(g.replies))
    FROM (
      SELECT m.hour, m.c_no[m.place] AS conv, m.usr, min(m.c_env[m.place]) AS env, count(*) AS n, max(m.at) AS last,
        count(*) FILTER (WHERE m.kind & 1 <> 0) AS files, count(*) FILTER (WHERE m.kind & 3 = 2) AS custom, count(*) FILTER (WHERE m.kind & 4 <> 0) AS replies
      FROM (
        SELECT x.at, x.hour, x.c_env, x.c_no, unnest(x.place) AS place, unnest(x.usr) AS usr, unnest(x.kind) AS kind, unnest(x.refused) AS refused
        -- The arrays are unpacked here, once, instead of with every look into them.
        FROM (SELECT n.at, date_trunc('hour', n.at, 'UTC') AS hour, n.c_env || '{}' AS c_env, n.c_no || '{}' AS c_no, n.place, n.usr, n.kind, n.refused
          FROM activity_notes n WHERE n.ctid = ANY (tids) AND n.at >= since AND n.place IS NOT NULL OFFSET 0) x
      ) m WHERE m.refused IS NULL GROUP BY 1, 2, 3
    ) g;
  PERFORM fold_active(array_agg(n.env), array_agg(n.at), array_agg(u))
    FROM activity_notes n CROSS JOIN LATERAL unnest(n.users) u WHERE n.ctid = ANY (tids) AND n.at >= since;
  PERFORM add_counts(array_agg(n.env), array_agg(n.at), array_agg(n.counts), NULL)
    FROM activity_notes n WHERE n.ctid = ANY (tids) AND n.at >= since AND n.counts IS NOT NULL;
  DELETE FROM activity_notes n WHERE n.ctid = ANY (tids);
  RETURN taken;
END $$;
