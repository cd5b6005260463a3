-- PostgreSQL reads the text of a check anew for every statement that writes to its table, which is a tenth of a small commit. What stands in
-- these columns comes from two constants of the program.
ALTER TABLE conversations DROP CONSTRAINT conversations_type_check;
ALTER TABLE members DROP CONSTRAINT members_role_check;

-- All that lock several conversations do so in the order of (env, id), which a caller knows beforehand: these two took (env, no).
CREATE OR REPLACE FUNCTION append_messages(
  p_env int[], p_conv text[], p_sender bigint[], p_own boolean[], p_cmid text[], p_id text[],
  p_text text[], p_reply text[], p_meta text[], -- of these two and the next, null where no message has any
  p_files text[] -- each a JSON array of attachment ids, or null
) RETURNS TABLE (ord int, status text, conv bigint, seq bigint, at timestamptz, attachments text) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan -- planning costs more than running
SET enable_seqscan = off -- a plan made while the tables were small must not read them whole when they have grown
AS $$
#variable_conflict use_column
DECLARE
  ts timestamptz(3);
  stale_env int[];
  stale_conv bigint[];
  files text[];
  file_verdicts text[];
  verdicts text[];
  convs bigint[];
  seqs bigint[];   -- the new seq, or that of the original
  counts bigint[]; -- live messages up to and with the new one
BEGIN
  -- Materialized, or the condition on `act` would move below the lock and leave the other rows unlocked.
  WITH locked AS MATERIALIZED (
    SELECT c.env, c.no, c.act FROM (SELECT DISTINCT e, i FROM unnest(p_env, p_conv) AS t(e, i)) w
      JOIN conversations c ON c.env = w.e AND c.id = w.i
      ORDER BY c.env, c.id FOR NO KEY UPDATE OF c
  ) SELECT array_agg(l.env), array_agg(l.no) INTO stale_env, stale_conv
    FROM locked l WHERE l.act < activity_step(clock_timestamp());
  ts := clock_timestamp();
  IF stale_conv IS NOT NULL THEN
    PERFORM renew_activity(stale_env, stale_conv, activity_step(ts));
  END IF;
  IF p_files IS NOT NULL THEN
    SELECT f.files, f.verdicts INTO files, file_verdicts FROM message_files(p_env, p_conv, p_sender, p_own, p_files) f;
  END IF;

  -- Subqueries and not joins: each is one look into one index, whatever the planner knows of the tables.
  SELECT array_agg(v.verdict ORDER BY v.ord), array_agg(v.cno ORDER BY v.ord),
    array_agg(coalesce(v.dup, v.last_seq + v.rn) ORDER BY v.ord), array_agg(v.message_count + v.rn ORDER BY v.ord)
  INTO verdicts, convs, seqs, counts FROM (
    SELECT i.*, count(*) FILTER (WHERE i.verdict = 'ok') OVER (PARTITION BY i.cno ORDER BY i.ord) AS rn FROM (
      SELECT u.ord, c.no AS cno, c.last_seq, c.message_count, d.dup,
        CASE
          WHEN c.no IS NULL THEN 'not_found'
          WHEN d.dup IS NOT NULL THEN 'duplicate'
          WHEN u.sender IS NOT NULL AND (
            (SELECT m.usr FROM members m WHERE m.env = u.env AND m.conv = c.no AND m.usr = u.sender) IS NULL
            -- a send may outlive its user by a moment
            OR (SELECT x.no FROM users x WHERE x.env + 0 = u.env AND x.no = u.sender AND x.erased_at IS NULL) IS NULL) THEN 'not_member'
          WHEN u.reply IS NOT NULL AND c.no IS DISTINCT FROM
            (SELECT r.conv FROM messages r WHERE r.env = u.env AND r.id = u.reply AND NOT r.hard) THEN 'reply_not_found'
          ELSE coalesce(file_verdicts[u.ord], 'ok')
        END AS verdict
      FROM unnest(p_env, p_conv, p_sender, p_cmid, p_reply) WITH ORDINALITY AS u(env, cid, sender, cmid, reply, ord)
      LEFT JOIN LATERAL (
        SELECT no, last_seq, message_count FROM conversations WHERE env = u.env AND id = u.cid AND deleted_at IS NULL LIMIT 1
      ) c ON true
      CROSS JOIN LATERAL (
        SELECT (SELECT x.seq FROM dedup x WHERE x.env = u.env AND x.conv = c.no AND x.sender = coalesce(u.sender, 0)
          AND x.client_msg_id = u.cmid AND x.created_at > ts - interval '48 hours') AS dup OFFSET 0
      ) d
    ) i
  ) v;

  INSERT INTO messages (env, conv, seq, id, sender, text, reply_to, metadata, attachments, created_at)
  SELECT u.env, u.conv, u.seq, u.id, u.sender, u.text, u.reply, u.meta, u.files, ts
  FROM unnest(p_env, convs, seqs, p_id, p_sender, p_text, p_reply, p_meta, files, verdicts)
    AS u(env, conv, seq, id, sender, text, reply, meta, files, verdict) WHERE u.verdict = 'ok';

  INSERT INTO dedup (env, conv, sender, client_msg_id, seq, created_at)
  SELECT u.env, u.conv, coalesce(u.sender, 0), u.cmid, u.seq, ts
  FROM unnest(p_env, convs, p_sender, p_cmid, seqs, verdicts) AS u(env, conv, sender, cmid, seq, verdict)
  WHERE u.verdict = 'ok' AND u.cmid IS NOT NULL
  ON CONFLICT (env, conv, sender, client_msg_id) DO UPDATE SET seq = excluded.seq, created_at = excluded.created_at;

  UPDATE conversations c SET last_seq = k.seq, message_count = k.count, last_message_seq = k.seq, last_activity_at = ts
  FROM (
    SELECT u.env, u.conv, max(u.seq) AS seq, max(u.count) AS count
    FROM unnest(p_env, convs, seqs, counts, verdicts) AS u(env, conv, seq, count, verdict) WHERE u.verdict = 'ok' GROUP BY 1, 2
  ) k WHERE c.env = k.env AND c.no = k.conv;

  -- A user's own send reads everything up to it; a send on its behalf does not, and is not unread for it.
  UPDATE members m SET last_read_seq = k.seq, read_count = k.count, own_unread = 0
  FROM (
    SELECT u.env, u.conv, u.sender, max(u.seq) AS seq, max(u.count) AS count
    FROM unnest(p_env, convs, p_sender, p_own, seqs, counts, verdicts) AS u(env, conv, sender, own, seq, count, verdict)
    WHERE u.verdict = 'ok' AND u.own GROUP BY 1, 2, 3
  ) k WHERE m.env = k.env AND m.conv = k.conv AND m.usr = k.sender;
  IF false = ANY (p_own) THEN
    UPDATE members m SET own_unread = m.own_unread + k.n
    FROM (
      SELECT u.env, u.conv, u.sender, array_agg(u.seq) AS seqs
      FROM unnest(p_env, convs, p_sender, p_own, seqs, verdicts) AS u(env, conv, sender, own, seq, verdict)
      WHERE u.verdict = 'ok' AND NOT u.own AND u.sender IS NOT NULL GROUP BY 1, 2, 3
    ) g JOIN LATERAL (
      SELECT b.env, b.conv, b.usr, (SELECT count(*) FROM unnest(g.seqs) s WHERE s > b.last_read_seq) AS n
      FROM members b WHERE b.env = g.env AND b.conv = g.conv AND b.usr = g.sender
    ) k ON true WHERE m.env = k.env AND m.conv = k.conv AND m.usr = k.usr;
  END IF;

  -- The event's id is the message's: one message, one message.created.
  INSERT INTO outbox (id, env, type, conv, seq, message, actor, created_at, due_at)
  SELECT 'evt_' || substr(u.id, 5), u.env, 'message.created', u.conv, u.seq, u.seq, u.sender, ts, ts
  FROM unnest(p_env, p_id, convs, seqs, p_sender, verdicts) AS u(env, id, conv, seq, sender, verdict)
    JOIN environments e ON e.no = u.env AND e.listeners <> 0 WHERE u.verdict = 'ok';

  IF p_files IS NOT NULL THEN
    UPDATE attachments a SET message = m.seq
    FROM unnest(p_env, p_id, p_files) u(env, id, files)
      JOIN messages m ON m.env = u.env AND m.id = u.id
      CROSS JOIN LATERAL json_array_elements_text(u.files::json) f(id)
    WHERE a.env = u.env AND a.id = f.id;
  END IF;

  RETURN QUERY SELECT u.ord::int, u.verdict, u.conv, u.seq, ts::timestamptz, u.files
  FROM unnest(verdicts, convs, seqs, files) WITH ORDINALITY AS u(verdict, conv, seq, files, ord);
END $$;

CREATE OR REPLACE FUNCTION mark_read(p_env int[], p_conv text[], p_usr bigint[], p_seq bigint[])
RETURNS TABLE (ord int, status text, conv bigint, read_seq bigint, unread bigint, changed boolean) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  ts timestamptz(3);
BEGIN
  PERFORM 1 FROM conversations c
    JOIN (SELECT DISTINCT e, i FROM unnest(p_env, p_conv) AS t(e, i)) w ON c.env = w.e AND c.id = w.i
    ORDER BY c.env, c.id FOR NO KEY UPDATE OF c;
  ts := clock_timestamp();
  RETURN QUERY
  WITH item AS MATERIALIZED (
    SELECT u.ord, u.env, u.usr, c.no AS cno, c.message_count, m.last_read_seq, m.read_count, m.own_unread,
      CASE WHEN c.no IS NULL THEN 'not_found' WHEN m.usr IS NULL THEN 'not_member' ELSE 'ok' END AS verdict,
      greatest(m.last_read_seq, max(least(u.seq, c.last_seq)) OVER (PARTITION BY u.env, c.no, u.usr)) AS target,
      c.last_message_seq
    FROM unnest(p_env, p_conv, p_usr, p_seq) WITH ORDINALITY AS u(env, cid, usr, seq, ord)
    LEFT JOIN LATERAL (
      SELECT * FROM conversations WHERE env = u.env AND id = u.cid AND deleted_at IS NULL LIMIT 1
    ) c ON true
    LEFT JOIN LATERAL (
      SELECT * FROM members WHERE env = u.env AND conv = c.no AND usr = u.usr LIMIT 1
    ) m ON true
  ), counted AS MATERIALIZED (
    SELECT DISTINCT ON (i.env, i.cno, i.usr) i.env, i.cno, i.usr, i.target, i.last_read_seq,
      CASE WHEN i.target >= coalesce(i.last_message_seq, 0) THEN i.message_count
        ELSE i.read_count + coalesce(x.live, 0) END AS read_count,
      CASE WHEN i.target >= coalesce(i.last_message_seq, 0) THEN 0
        ELSE i.own_unread - coalesce(x.own, 0) END AS own_unread
    FROM item i LEFT JOIN LATERAL (
      SELECT count(*) AS live, count(*) FILTER (WHERE s.sender = i.usr) AS own FROM messages s
      WHERE i.target > i.last_read_seq AND i.target < i.last_message_seq
        AND s.env = i.env AND s.conv = i.cno AND s.seq > i.last_read_seq AND s.seq <= i.target AND s.deleted_at IS NULL
    ) x ON true
    WHERE i.verdict = 'ok'
  ), moved AS (
    UPDATE members m SET last_read_seq = k.target, read_count = k.read_count, own_unread = k.own_unread,
      self_at = ts, self_act = activity_step(ts)
    FROM counted k WHERE k.target > k.last_read_seq AND m.env = k.env AND m.conv = k.cno AND m.usr = k.usr
  ), noted AS (
    -- SPEC 6, message.read: one per member and 10 s, with the last value; the row outlives a crash.
    INSERT INTO outbox (id, env, type, key, conv, seq, users, created_at, due_at)
    SELECT make_id('evt_', ts), k.env, 'message.read', k.cno || ' ' || k.usr, k.cno, k.target, ARRAY[k.usr], ts, ts + interval '10 seconds'
    FROM counted k JOIN environments e ON e.no = k.env AND e.listeners & 4 <> 0 WHERE k.target > k.last_read_seq
    ON CONFLICT (env, key) WHERE key IS NOT NULL DO UPDATE SET seq = excluded.seq, created_at = excluded.created_at
  )
  SELECT i.ord::int, i.verdict, i.cno, k.target,
    i.message_count - k.read_count - k.own_unread,
    k.target > k.last_read_seq
  FROM item i LEFT JOIN counted k ON k.env = i.env AND k.cno = i.cno AND k.usr = i.usr;
END $$;

-- The group commit, for the batch in which nothing is wrong: nearly every one. It writes at once and looks at what it could
-- write; where a message must be refused or was there before, all of it is undone and append_messages finds out which.
-- The caller has counted: `c_` are the conversations, each once and in the order of (env, id), in which all that lock several do;
-- `s_` are the members who send. Where a number stands for a conversation it is its place in `c_`, from 1.
-- Its connection's settings let rows be joined one by one only, so that they are locked in this order; if not, append_messages does it all.
CREATE FUNCTION append_batch(
  c_ord bigint[], c_env int[], c_id text[], c_n int[], -- n: its messages
  s_conv int[], s_usr bigint[],
  s_own int[],   -- rank in the conversation's messages of the last that the user sent itself, 0: none
  s_after int[], -- messages after that one which a server sent on its behalf
  p_conv int[], p_rank int[], p_sender bigint[], p_own boolean[], p_cmid text[], p_id text[], p_text text[],
  p_reply text[], p_meta text[], -- of these two and the next, null where no message has any
  p_files text[], -- each a JSON array of attachment ids, or null
  OUT convs text, OUT seqs text, OUT times text, -- of the conversations: number, last seq before the batch, milliseconds
  OUT attached text[],                           -- of the messages
  OUT verdicts json                              -- of append_messages; then the others are null
) LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
  ords bigint[];
  nos bigint[];
  lasts bigint[];
  counts bigint[];
  ats timestamptz[];
  millis bigint[];
  stale_env int[];
  stale_conv bigint[];
  envs int[];
  cids text[];
  files text[];
  file_verdicts text[];
  written bigint;
BEGIN
  WITH moved AS (
    UPDATE conversations c SET last_seq = c.last_seq + k.n, message_count = c.message_count + k.n,
      last_message_seq = c.last_seq + k.n, last_activity_at = clock_timestamp()
    FROM unnest(c_env, c_id, c_n) WITH ORDINALITY AS k(env, id, n, ord)
    WHERE c.env = k.env AND c.id = k.id AND c.deleted_at IS NULL
    RETURNING k.ord, k.n, c.env, c.no, c.last_seq, c.message_count, c.last_activity_at AS at, c.act
  ) SELECT array_agg(m.ord), array_agg(m.no), array_agg(m.last_seq - m.n), array_agg(m.message_count - m.n), array_agg(m.at),
      array_agg((extract(epoch FROM m.at) * 1000)::bigint), array_agg(m.env) FILTER (WHERE m.act < activity_step(m.at)),
      array_agg(m.no) FILTER (WHERE m.act < activity_step(m.at))
    INTO ords, nos, lasts, counts, ats, millis, stale_env, stale_conv FROM moved m;
  IF ords IS DISTINCT FROM c_ord THEN RAISE SQLSTATE 'PA001'; END IF;
  IF stale_conv IS NOT NULL THEN
    PERFORM renew_activity(stale_env, stale_conv, activity_step((SELECT max(a) FROM unnest(ats) a)));
  END IF;

  -- A user's own send reads everything up to it; a send on its behalf does not, and is not unread for it.
  -- Whoever is no member, or was erased a moment ago, is not written. In the order of mark_delivered.
  IF cardinality(s_conv) > 0 THEN
    UPDATE members m SET
      last_read_seq = CASE WHEN k.own > 0 THEN k.seq + k.own ELSE m.last_read_seq END,
      read_count = CASE WHEN k.own > 0 THEN k.count + k.own ELSE m.read_count END,
      own_unread = CASE WHEN k.own > 0 THEN 0 ELSE m.own_unread END + k.after
    FROM (
      SELECT c_env[u.c] AS env, nos[u.c] AS conv, u.usr, lasts[u.c] AS seq, counts[u.c] AS count, u.own, u.after
      FROM unnest(s_conv, s_usr, s_own, s_after) AS u(c, usr, own, after) ORDER BY 1, 2, 3
    ) k, users x
    WHERE x.env + 0 = k.env AND x.no = k.usr AND x.erased_at IS NULL AND m.env = k.env AND m.conv = k.conv AND m.usr = k.usr;
    GET DIAGNOSTICS written = ROW_COUNT;
    IF written <> cardinality(s_conv) THEN RAISE SQLSTATE 'PA001'; END IF;
  END IF;
  IF p_reply IS NOT NULL THEN
    PERFORM 1 FROM unnest(p_conv, p_reply) AS u(c, reply) WHERE u.reply IS NOT NULL AND nos[u.c] IS DISTINCT FROM
      (SELECT r.conv FROM messages r WHERE r.env = c_env[u.c] AND r.id = u.reply AND NOT r.hard);
    IF FOUND THEN RAISE SQLSTATE 'PA001'; END IF;
  END IF;
  IF p_files IS NOT NULL THEN
    SELECT array_agg(c_env[u.c] ORDER BY u.ord), array_agg(c_id[u.c] ORDER BY u.ord) INTO envs, cids
      FROM unnest(p_conv) WITH ORDINALITY AS u(c, ord);
    SELECT f.files, f.verdicts INTO files, file_verdicts FROM message_files(envs, cids, p_sender, p_own, p_files) f;
    IF num_nonnulls(VARIADIC file_verdicts) > 0 THEN RAISE SQLSTATE 'PA001'; END IF;
  END IF;

  INSERT INTO messages (env, conv, seq, id, sender, text, reply_to, metadata, attachments, created_at)
  SELECT c_env[u.c], nos[u.c], lasts[u.c] + u.rank, u.id, u.sender, u.text, u.reply, u.meta, u.files, ats[u.c]
  FROM unnest(p_conv, p_rank, p_id, p_sender, p_text, p_reply, p_meta, files) AS u(c, rank, id, sender, text, reply, meta, files);

  -- One that is there already, however old, is for append_messages.
  INSERT INTO dedup (env, conv, sender, client_msg_id, seq, created_at)
  SELECT c_env[u.c], nos[u.c], coalesce(u.sender, 0), u.cmid, lasts[u.c] + u.rank, ats[u.c]
  FROM unnest(p_conv, p_rank, p_sender, p_cmid) AS u(c, rank, sender, cmid) WHERE u.cmid IS NOT NULL;

  -- The event's id is the message's: one message, one message.created.
  PERFORM 1 FROM environments e WHERE e.no = ANY (c_env) AND e.listeners <> 0;
  IF FOUND THEN
    INSERT INTO outbox (id, env, type, conv, seq, message, actor, created_at, due_at)
    SELECT 'evt_' || substr(u.id, 5), e.no, 'message.created', nos[u.c], lasts[u.c] + u.rank, lasts[u.c] + u.rank, u.sender, ats[u.c], ats[u.c]
    FROM unnest(p_conv, p_rank, p_id, p_sender) AS u(c, rank, id, sender)
      JOIN environments e ON e.no = c_env[u.c] AND e.listeners <> 0;
  END IF;

  IF p_files IS NOT NULL THEN
    UPDATE attachments a SET message = lasts[u.c] + u.rank
    FROM unnest(p_conv, p_rank, p_files) AS u(c, rank, files), json_array_elements_text(u.files::json) f(id)
    WHERE a.env = c_env[u.c] AND a.id = f.id;
  END IF;

  convs := array_to_string(nos, ',');
  seqs := array_to_string(lasts, ',');
  times := array_to_string(millis, ',');
  attached := files;
EXCEPTION WHEN unique_violation OR SQLSTATE 'PA001' THEN
  SELECT array_agg(c_env[u.c] ORDER BY u.ord), array_agg(c_id[u.c] ORDER BY u.ord) INTO envs, cids
    FROM unnest(p_conv) WITH ORDINALITY AS u(c, ord);
  SELECT json_agg(json_build_object('ord', r.ord, 'status', r.status, 'conv', r.conv, 'seq', r.seq,
      'at', (extract(epoch FROM r.at) * 1000)::bigint, 'attachments', r.attachments)) INTO verdicts
    FROM append_messages(envs, cids, p_sender, p_own, p_cmid, p_id, p_text, p_reply, p_meta, p_files) r;
END $$;

-- The same for one message without attachments, which most commits of a quiet service are: half the cost of a batch of one.
CREATE FUNCTION append_one(
  p_env int, p_conv text, p_sender bigint, p_own boolean, p_cmid text, p_id text, p_text text, p_reply text, p_meta text,
  OUT o_conv bigint, OUT o_seq bigint, OUT o_at bigint, -- milliseconds
  OUT o_verdicts json                                   -- of append_messages; then the others are null
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  ts timestamptz;
  live bigint;
  stale boolean;
BEGIN
  UPDATE conversations c SET last_seq = c.last_seq + 1, message_count = c.message_count + 1,
    last_message_seq = c.last_seq + 1, last_activity_at = clock_timestamp()
  WHERE c.env = p_env AND c.id = p_conv AND c.deleted_at IS NULL
  RETURNING c.no, c.last_seq, c.message_count, c.last_activity_at, c.act < activity_step(c.last_activity_at)
  INTO o_conv, o_seq, live, ts, stale;
  IF NOT FOUND THEN RAISE SQLSTATE 'PA001'; END IF;
  IF stale THEN
    PERFORM renew_activity(ARRAY[p_env], ARRAY[o_conv], activity_step(ts));
  END IF;
  IF p_sender IS NOT NULL THEN
    UPDATE members m SET last_read_seq = CASE WHEN p_own THEN o_seq ELSE m.last_read_seq END,
      read_count = CASE WHEN p_own THEN live ELSE m.read_count END, own_unread = CASE WHEN p_own THEN 0 ELSE m.own_unread + 1 END
    WHERE m.env = p_env AND m.conv = o_conv AND m.usr = p_sender
      AND EXISTS (SELECT 1 FROM users x WHERE x.env = p_env AND x.no = p_sender AND x.erased_at IS NULL);
    IF NOT FOUND THEN RAISE SQLSTATE 'PA001'; END IF;
  END IF;
  IF p_reply IS NOT NULL THEN
    PERFORM 1 FROM messages r WHERE r.env = p_env AND r.id = p_reply AND r.conv = o_conv AND NOT r.hard;
    IF NOT FOUND THEN RAISE SQLSTATE 'PA001'; END IF;
  END IF;
  INSERT INTO messages (env, conv, seq, id, sender, text, reply_to, metadata, created_at)
    VALUES (p_env, o_conv, o_seq, p_id, p_sender, p_text, p_reply, p_meta, ts);
  IF p_cmid IS NOT NULL THEN
    INSERT INTO dedup (env, conv, sender, client_msg_id, seq, created_at)
      VALUES (p_env, o_conv, coalesce(p_sender, 0), p_cmid, o_seq, ts);
  END IF;
  INSERT INTO outbox (id, env, type, conv, seq, message, actor, created_at, due_at)
    SELECT 'evt_' || substr(p_id, 5), p_env, 'message.created', o_conv, o_seq, o_seq, p_sender, ts, ts
    FROM environments e WHERE e.no = p_env AND e.listeners <> 0;
  o_at := (extract(epoch FROM ts) * 1000)::bigint;
EXCEPTION WHEN unique_violation OR SQLSTATE 'PA001' THEN
  SELECT json_agg(json_build_object('ord', r.ord, 'status', r.status, 'conv', r.conv, 'seq', r.seq,
      'at', (extract(epoch FROM r.at) * 1000)::bigint, 'attachments', r.attachments)) INTO o_verdicts
    FROM append_messages(ARRAY[p_env], ARRAY[p_conv], ARRAY[p_sender], ARRAY[p_own], ARRAY[p_cmid], ARRAY[p_id], ARRAY[p_text],
      CASE WHEN p_reply IS NOT NULL THEN ARRAY[p_reply] END, CASE WHEN p_meta IS NOT NULL THEN ARRAY[p_meta] END, NULL) r;
END $$;
