-- The group commit: appends messages to conversations, each message with the next seq of its conversation.
--   1. Lock. A conversation that another transaction has locked is left out: its messages are 'blocked', and nothing waits
--      for it. Every change of a conversation, its members or its messages takes this lock, so what the next steps read stays
--      true until the commit, and a row that was found once is found again by its place (ctid).
--   2. Decide, message by message, what is refused and what was sent before (append_rules.sql).
--   3. Write the others, all at once.
-- A clientMsgId of one sender occurs at most once per conversation in a call. append_message does the same for one message.
CREATE OR REPLACE FUNCTION append_messages(
  c_env int[], c_id text[], -- the conversations, each once
  p_conv int[],             -- for each message: the index of its conversation in c_id, from 1
  p_rank int[],             -- for each message: its index among the messages of that conversation, from 1
  p_sender bigint[], p_own boolean[], p_cmid text[], p_id text[], p_text text[],
  p_reply text[], p_meta text[], p_files text[], -- null if no message has any; files: JSON arrays of attachment ids
  p_wait_ms int,                 -- milliseconds to wait for locked conversations; null: no wait
  OUT convs text, OUT seqs text, -- for each conversation: its number, and its last seq before
  OUT at bigint,                 -- milliseconds since the epoch
  OUT verdicts text[],           -- for each message: null if it was written; no array if all were
  OUT originals bigint[],        -- for each message: the seq of the one that was sent before
  OUT attached text[]
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  total int := cardinality(p_id);
  ts timestamptz(3);
  active timestamptz(3);
  step int;
  tids tid[];
  nos bigint[];
  lasts bigint[];
  counts bigint[];
  steps int[];
  sender_tids tid[];
  doubtful boolean;
  -- The environments whose messages go into the outbox (bits 1 and 2 of their listeners), and into the sink's log (bit 8).
  listening int[];
  sinking int[];
BEGIN
  IF p_wait_ms IS NOT NULL THEN
    PERFORM set_config('lock_timeout', p_wait_ms::text, true);
    PERFORM 1 FROM generate_series(1, cardinality(c_id)) k, LATERAL (
      SELECT 1 FROM conversations c WHERE c.id = c_id[k] AND c.env = c_env[k] FOR NO KEY UPDATE) c;
  END IF;
  SELECT array_agg(c.tid), array_agg(c.no), array_agg(c.last_seq), array_agg(c.message_count), array_agg(c.last_activity_step)
  INTO tids, nos, lasts, counts, steps
  FROM generate_series(1, cardinality(c_id)) k LEFT JOIN LATERAL (
    SELECT c.ctid AS tid, c.no, c.last_seq, c.message_count, c.last_activity_step FROM conversations c
    WHERE c.id = c_id[k] AND c.env = c_env[k] AND c.deleted_at IS NULL FOR NO KEY UPDATE SKIP LOCKED
  ) c ON true;
  SELECT k.at, k.active INTO ts, active FROM activity_clock() k;
  step := activity_step(active);

  SELECT array_agg(m.tid), array_agg(d.seq),
    bool_or(d.seq IS NOT NULL OR m.tid IS NULL AND p_sender[i] IS NOT NULL OR nos[p_conv[i]] IS NULL),
    (SELECT array_agg(e.no) FROM environments e WHERE e.no = ANY (c_env) AND e.listeners & 3 <> 0),
    (SELECT array_agg(e.no) FROM environments e WHERE e.no = ANY (c_env) AND e.listeners & 8 <> 0)
  INTO sender_tids, originals, doubtful, listening, sinking
  FROM generate_series(1, total) i
  LEFT JOIN sent_before(c_env[p_conv[i]], nos[p_conv[i]], p_sender[i], p_cmid[i], ts) d ON true
  LEFT JOIN sending_member(c_env[p_conv[i]], nos[p_conv[i]], p_sender[i]) m ON true;

  IF doubtful OR p_reply IS NOT NULL OR p_files IS NOT NULL THEN
    SELECT array_agg(CASE
        WHEN nos[p_conv[i]] IS NULL THEN why_not_locked(c_env[p_conv[i]], c_id[p_conv[i]])
        WHEN originals[i] IS NOT NULL THEN 'duplicate'
        WHEN p_sender[i] IS NOT NULL AND sender_tids[i] IS NULL THEN 'not_member'
        WHEN p_reply[i] IS NOT NULL AND NOT EXISTS (SELECT 1 FROM reply_target(c_env[p_conv[i]], nos[p_conv[i]], p_reply[i])) THEN 'reply_not_found'
      END) INTO verdicts FROM generate_series(1, total) i;
    IF p_files IS NOT NULL THEN
      SELECT f.verdicts, f.attached INTO verdicts, attached
        FROM take_attachments(c_env, nos, p_conv, p_sender, p_own, p_files, verdicts) f;
    END IF;
    IF num_nonnulls(VARIADIC verdicts) = 0 THEN
      verdicts := NULL;
    ELSE
      SELECT array_agg(r.rank ORDER BY r.i) INTO p_rank FROM (
        SELECT i, count(*) FILTER (WHERE verdicts[i] IS NULL) OVER (PARTITION BY p_conv[i] ORDER BY i)::int AS rank FROM generate_series(1, total) i
      ) r;
    END IF;
  END IF;

  INSERT INTO messages (env, conv, seq, id, sender, text, reply_to, metadata, attachments, created_at, active_at)
    SELECT c_env[p_conv[i]], nos[p_conv[i]], lasts[p_conv[i]] + p_rank[i], p_id[i], p_sender[i], p_text[i], p_reply[i], p_meta[i], attached[i], ts,
      nullif(active, ts)
    FROM generate_series(1, total) i WHERE verdicts[i] IS NULL;
  INSERT INTO sent_ids (env, conv, sender, client_msg_id, seq, created_at)
    SELECT c_env[p_conv[i]], nos[p_conv[i]], coalesce(p_sender[i], 0), p_cmid[i], lasts[p_conv[i]] + p_rank[i], ts
    FROM generate_series(1, total) i WHERE verdicts[i] IS NULL AND p_cmid[i] IS NOT NULL;
  UPDATE conversations c SET last_seq = lasts[k.c] + k.n, last_message_seq = lasts[k.c] + k.n, message_count = counts[k.c] + k.n,
      last_activity_at = greatest(c.last_activity_at, active), last_activity_step = greatest(c.last_activity_step, step)
    FROM (SELECT p_conv[i] AS c, max(p_rank[i]) AS n FROM generate_series(1, total) i WHERE verdicts[i] IS NULL GROUP BY 1) k
    WHERE c.ctid = tids[k.c];
  -- A send by the user itself marks everything up to it as read. A send on the user's behalf does not, but does not
  -- count as unread for the user.
  UPDATE members m SET last_read_seq = coalesce(lasts[k.c] + k.own, m.last_read_seq), read_count = coalesce(counts[k.c] + k.own, m.read_count),
      own_unread = CASE WHEN k.own IS NULL THEN m.own_unread ELSE 0 END
        + CASE WHEN k.behalf IS NULL THEN 0 ELSE (SELECT count(*) FROM unnest(k.behalf) b WHERE b > coalesce(k.own, 0)) END
    FROM (
      SELECT sender_tids[i] AS tid, p_conv[i] AS c, max(p_rank[i]) FILTER (WHERE p_own[i]) AS own,
        array_agg(p_rank[i]) FILTER (WHERE NOT p_own[i]) AS behalf
      FROM generate_series(1, total) i WHERE verdicts[i] IS NULL AND sender_tids[i] IS NOT NULL GROUP BY 1, 2
    ) k WHERE m.ctid = k.tid;
  IF listening IS NOT NULL THEN
    PERFORM note_for_outbox(array_agg(c_env[p_conv[i]]), array_agg(nos[p_conv[i]]), array_agg(lasts[p_conv[i]] + p_rank[i]),
        array_agg(p_id[i]), array_agg(p_sender[i]), ts)
      FROM generate_series(1, total) i WHERE verdicts[i] IS NULL AND c_env[p_conv[i]] = ANY (listening);
  END IF;
  IF sinking IS NOT NULL THEN
    INSERT INTO sink_log (env, conv, seq, message, at)
      SELECT c_env[p_conv[i]], nos[p_conv[i]], lasts[p_conv[i]] + p_rank[i], lasts[p_conv[i]] + p_rank[i], ts
      FROM generate_series(1, total) i WHERE verdicts[i] IS NULL AND c_env[p_conv[i]] = ANY (sinking);
  END IF;
  -- For analytics (migrations/0025), which gets the arrays unchanged.
  IF verdicts IS NULL OR num_nulls(VARIADIC verdicts) > 0 THEN
    INSERT INTO activity_notes (at, size, c_env, c_no, place, usr, kind, refused)
      VALUES (ts, total, c_env, nos, p_conv, p_sender, message_kinds(p_text, p_reply, p_meta, p_files), verdicts);
  END IF;
  IF attached IS NOT NULL THEN
    WITH used AS (
      UPDATE attachments a SET message = lasts[p_conv[i]] + p_rank[i]
        FROM generate_series(1, total) i, json_array_elements_text(p_files[i]::json) f
        WHERE verdicts[i] IS NULL AND a.env = c_env[p_conv[i]] AND a.id = f RETURNING a.env, a.size
    )
    INSERT INTO activity_notes (at, env, counts)
      SELECT ts, u.env, jsonb_build_object('attachments', count(*), 'attachmentBytes', sum(u.size)) FROM used u GROUP BY u.env;
  END IF;
  IF step > ANY (steps) THEN
    PERFORM renew_members(c_env[k.c], nos[k.c], step)
      FROM (SELECT DISTINCT p_conv[i] AS c FROM generate_series(1, total) i WHERE verdicts[i] IS NULL) k WHERE steps[k.c] < step;
  END IF;

  convs := array_to_string(nos, ',', '');
  seqs := array_to_string(lasts, ',', '');
  at := (extract(epoch FROM ts) * 1000)::bigint;
  IF verdicts IS NULL THEN originals := NULL; END IF;
END $$;

-- The same as append_messages for one message without attachments, which most commits of a quiet service are. It
-- costs half of a batch of one, because nothing is an array. test/core/append-paths.test.ts shows that both leave the
-- same store.
CREATE OR REPLACE FUNCTION append_message(
  p_env int, p_conv text, p_sender bigint, p_own boolean, p_cmid text, p_id text, p_text text, p_reply text, p_meta text,
  OUT o_conv bigint, OUT o_seq bigint, OUT o_at bigint, -- if the verdict is 'duplicate', the seq is that of the original
  OUT o_verdict text -- null if it was written
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  ts timestamptz(3);
  active timestamptz(3);
  step int;
  conv_tid tid;
  live bigint;
  conv_step int;
  sender_tid tid;
  original bigint;
  listeners int; -- of the environment, as bits
BEGIN
  SELECT c.ctid, c.no, c.last_seq + 1, c.message_count + 1, c.last_activity_step INTO conv_tid, o_conv, o_seq, live, conv_step FROM conversations c
    WHERE c.id = p_conv AND c.env = p_env AND c.deleted_at IS NULL FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    o_verdict := why_not_locked(p_env, p_conv);
    RETURN;
  END IF;
  SELECT k.at, k.active INTO ts, active FROM activity_clock() k;
  step := activity_step(active);
  SELECT d.seq, m.tid INTO original, sender_tid FROM (SELECT) one
    LEFT JOIN sent_before(p_env, o_conv, p_sender, p_cmid, ts) d ON true
    LEFT JOIN sending_member(p_env, o_conv, p_sender) m ON true;
  IF original IS NOT NULL THEN
    o_verdict := 'duplicate';
    o_seq := original;
  ELSIF p_sender IS NOT NULL AND sender_tid IS NULL THEN
    o_verdict := 'not_member';
  ELSIF p_reply IS NOT NULL AND NOT EXISTS (SELECT 1 FROM reply_target(p_env, o_conv, p_reply)) THEN
    o_verdict := 'reply_not_found';
  END IF;
  IF o_verdict IS NOT NULL THEN RETURN; END IF;

  UPDATE conversations c SET last_seq = o_seq, last_message_seq = o_seq, message_count = live,
      last_activity_at = greatest(c.last_activity_at, active), last_activity_step = greatest(c.last_activity_step, step)
    WHERE c.ctid = conv_tid;
  IF p_own THEN
    UPDATE members m SET last_read_seq = o_seq, read_count = live, own_unread = 0 WHERE m.ctid = sender_tid;
  ELSIF sender_tid IS NOT NULL THEN
    UPDATE members m SET own_unread = m.own_unread + 1 WHERE m.ctid = sender_tid;
  END IF;
  INSERT INTO messages (env, conv, seq, id, sender, text, reply_to, metadata, created_at, active_at)
    VALUES (p_env, o_conv, o_seq, p_id, p_sender, p_text, p_reply, p_meta, ts, nullif(active, ts));
  IF p_cmid IS NOT NULL THEN
    INSERT INTO sent_ids (env, conv, sender, client_msg_id, seq, created_at) VALUES (p_env, o_conv, coalesce(p_sender, 0), p_cmid, o_seq, ts);
  END IF;
  listeners := (SELECT e.listeners FROM environments e WHERE e.no = p_env);
  IF listeners & 3 <> 0 THEN
    PERFORM note_for_outbox(ARRAY[p_env], ARRAY[o_conv], ARRAY[o_seq], ARRAY[p_id], ARRAY[p_sender], ts);
  END IF;
  IF listeners & 8 <> 0 THEN
    INSERT INTO sink_log (env, conv, seq, message, at) VALUES (p_env, o_conv, o_seq, o_seq, ts);
  END IF;
  INSERT INTO activity_notes (at, c_env, c_no, place, usr, kind) VALUES (ts, ARRAY[p_env], ARRAY[o_conv], '{1}', ARRAY[p_sender],
    CASE WHEN p_reply IS NULL AND p_meta IS NULL THEN NULL ELSE message_kinds(ARRAY[p_text], ARRAY[p_reply], ARRAY[p_meta], NULL) END);
  IF conv_step < step THEN
    PERFORM renew_members(p_env, o_conv, step);
  END IF;
  o_at := (extract(epoch FROM ts) * 1000)::bigint;
END $$;
