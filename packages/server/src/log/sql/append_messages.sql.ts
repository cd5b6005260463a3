import {
  placeAfterAppend,
  senderAfterBehalf,
  senderAfterOwn,
  senderAfterSeveral,
} from '../unread/sql/counters.ts';
import { guarded, guards } from './guards.ts';

export const sql = `
-- The group commit: appends messages to conversations, each message with the next seq of its conversation.
--   1. Lock. A conversation that another transaction has locked is left out: its messages are 'blocked', and nothing waits
--      for it. Every change of a conversation, its members or its messages takes this lock, so what the next steps read stays
--      true until the commit, and a row that was found once is found again by its place (ctid).
--   2. Decide, message by message, what is refused and what was sent before (append_rules.sql.ts).
--   3. Write the others, all at once, and tell the consumers of the log (consumers.ts).
-- A clientMsgId of one sender occurs at most once per conversation in a call. A message that comes alone and has no
-- attachments or extras, as most do in a quiet service, takes the same steps without arrays, at half the cost.
CREATE OR REPLACE FUNCTION append_messages(
  c_env int[], c_id text[], -- the conversations, each once
  p_conv int[],             -- for each message: the index of its conversation in c_id, from 1
  p_rank int[],             -- for each message: its index among the messages of that conversation, from 1
  p_sender bigint[], p_own boolean[], p_cmid text[], p_id text[], p_text text[],
  p_reply text[], p_meta text[], p_files text[], -- null if no message has any; files: JSON arrays of attachment ids
  p_thread bigint[], p_extras text[],            -- null if all messages are plain
  p_reported boolean[],                          -- whether a word list wants it reported; null if none does
  p_wait_ms int,                 -- milliseconds to wait for locked conversations; null: no wait
  OUT convs text, OUT seqs text, -- for each conversation: its number, and its last seq before
  OUT at bigint,                 -- milliseconds since the epoch
  OUT verdicts text[],           -- for each message: null if it was written; no array if all were
  OUT originals bigint[],        -- for each message: the seq of the one that was sent before
  OUT attached text[],
  OUT noted boolean              -- the outbox has new rows
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
  marks int[]; -- the flags of the conversations
  sender_tids tid[];
  silences timestamptz[]; -- until when each sender is silenced
  doubtful boolean;
  listening int; -- the listeners of all these environments, as bits
  -- The same of one message alone.
  conv_tid tid;
  conv_no bigint;
  conv_last bigint;
  conv_count bigint;
  conv_step int;
  conv_flags int;
  sender_tid tid;
  silence timestamptz;
  original bigint;
BEGIN
  IF total = 1 AND p_files IS NULL AND p_thread IS NULL AND p_extras IS NULL AND p_reported IS NULL AND p_wait_ms IS NULL THEN
    SELECT c.ctid, c.no, c.last_seq, c.message_count, c.last_activity_step, c.flags
      INTO conv_tid, conv_no, conv_last, conv_count, conv_step, conv_flags FROM conversations c
      WHERE c.id = c_id[1] AND c.env = c_env[1] AND c.deleted_at IS NULL FOR NO KEY UPDATE SKIP LOCKED;
    SELECT k.at, k.active INTO ts, active FROM activity_clock() k;
    step := activity_step(active);
    SELECT d.seq, m.tid, m.silenced, e.listeners INTO original, sender_tid, silence, listening FROM environments e
      LEFT JOIN sent_before(c_env[1], conv_no, p_sender[1], p_cmid[1], ts) d ON true
      LEFT JOIN sending_member(c_env[1], conv_no, p_sender[1]) m ON true
      WHERE e.no = c_env[1];
    nos := ARRAY[conv_no];
    lasts := ARRAY[conv_last];
    steps := ARRAY[conv_step];
    IF original IS NOT NULL OR sender_tid IS NULL AND p_sender[1] IS NOT NULL OR conv_no IS NULL OR p_reply IS NOT NULL
        OR (conv_flags & ${guarded} <> 0 OR silence > ts) AND p_own[1] THEN
      verdicts := ARRAY[append_verdict(c_env[1], c_id[1], conv_no, original, p_sender[1], sender_tid, p_reply[1],
        p_own[1], conv_flags, silence, ts)];
      IF verdicts[1] IS NULL THEN verdicts := NULL; END IF;
    END IF;
    IF verdicts IS NULL THEN
      INSERT INTO messages (env, conv, seq, id, sender, text, reply_to, metadata, created_at, active_at)
        VALUES (c_env[1], conv_no, conv_last + 1, p_id[1], p_sender[1], p_text[1], p_reply[1], p_meta[1], ts, nullif(active, ts));
      IF p_cmid[1] IS NOT NULL THEN
        INSERT INTO sent_ids (env, conv, sender, client_msg_id, seq, created_at)
          VALUES (c_env[1], conv_no, coalesce(p_sender[1], 0), p_cmid[1], conv_last + 1, ts);
      END IF;
      UPDATE conversations c SET last_seq = conv_last + 1, ${placeAfterAppend('conv_last + 1', 'conv_count + 1')},
          last_activity_at = greatest(c.last_activity_at, active), last_activity_step = greatest(c.last_activity_step, step)
        WHERE c.ctid = conv_tid;
      IF p_own[1] THEN
        UPDATE members m SET ${senderAfterOwn('conv_last + 1', 'conv_count + 1')},
            last_sent_at = CASE WHEN conv_flags & ${guards.slowMode} <> 0 THEN ts ELSE m.last_sent_at END
          WHERE m.ctid = sender_tid;
      ELSIF sender_tid IS NOT NULL THEN
        UPDATE members m SET ${senderAfterBehalf('m')} WHERE m.ctid = sender_tid;
      END IF;
    ELSE
      originals := ARRAY[original];
    END IF;
  ELSE
    IF p_wait_ms IS NOT NULL THEN
      PERFORM set_config('lock_timeout', p_wait_ms::text, true);
      PERFORM 1 FROM generate_series(1, cardinality(c_id)) k, LATERAL (
        SELECT 1 FROM conversations c WHERE c.id = c_id[k] AND c.env = c_env[k] FOR NO KEY UPDATE) c;
    END IF;
    SELECT array_agg(c.tid), array_agg(c.no), array_agg(c.last_seq), array_agg(c.message_count), array_agg(c.last_activity_step), array_agg(c.flags)
    INTO tids, nos, lasts, counts, steps, marks
    FROM generate_series(1, cardinality(c_id)) k LEFT JOIN LATERAL (
      SELECT c.ctid AS tid, c.no, c.last_seq, c.message_count, c.last_activity_step, c.flags FROM conversations c
      WHERE c.id = c_id[k] AND c.env = c_env[k] AND c.deleted_at IS NULL FOR NO KEY UPDATE SKIP LOCKED
    ) c ON true;
    SELECT k.at, k.active INTO ts, active FROM activity_clock() k;
    step := activity_step(active);

    SELECT array_agg(m.tid), array_agg(m.silenced), array_agg(d.seq),
      bool_or(d.seq IS NOT NULL OR m.tid IS NULL AND p_sender[i] IS NOT NULL OR nos[p_conv[i]] IS NULL
        OR (marks[p_conv[i]] & ${guarded} <> 0 OR m.silenced > ts) AND p_own[i]),
      (SELECT bit_or(e.listeners) FROM environments e WHERE e.no = ANY (c_env))
    INTO sender_tids, silences, originals, doubtful, listening
    FROM generate_series(1, total) i
    LEFT JOIN sent_before(c_env[p_conv[i]], nos[p_conv[i]], p_sender[i], p_cmid[i], ts) d ON true
    LEFT JOIN sending_member(c_env[p_conv[i]], nos[p_conv[i]], p_sender[i]) m ON true;

    IF doubtful OR p_reply IS NOT NULL OR p_files IS NOT NULL THEN
      SELECT array_agg(append_verdict(c_env[p_conv[i]], c_id[p_conv[i]], nos[p_conv[i]], originals[i], p_sender[i], sender_tids[i], p_reply[i],
          p_own[i], marks[p_conv[i]], silences[i], ts))
        INTO verdicts FROM generate_series(1, total) i;
      IF p_files IS NOT NULL THEN
        SELECT f.verdicts, f.attached INTO verdicts, attached
          FROM take_attachments(c_env, nos, p_conv, p_sender, p_own, p_files, verdicts) f;
      END IF;
      -- Of several messages of a member that slow mode lets send one, the first is taken.
      IF EXISTS (SELECT 1 FROM unnest(marks) f WHERE f & ${guards.slowMode} <> 0) THEN
        SELECT array_agg(CASE WHEN s.pause IS NOT NULL AND s.n > 1 THEN refused_until('slow', ts + s.pause, ts) ELSE verdicts[s.i] END ORDER BY s.i)
          INTO verdicts FROM (
            SELECT i, p.pause, row_number() OVER (PARTITION BY p_conv[i], p_sender[i], p.pause IS NULL ORDER BY i) AS n
            FROM generate_series(1, total) i LEFT JOIN LATERAL (
              SELECT slow_mode(c_env[p_conv[i]], nos[p_conv[i]], sender_tids[i]) AS pause
              WHERE verdicts[i] IS NULL AND p_own[i] AND marks[p_conv[i]] & ${guards.slowMode} <> 0
            ) p ON true
          ) s;
      END IF;
      IF num_nonnulls(VARIADIC verdicts) = 0 THEN
        verdicts := NULL;
      ELSE
        SELECT array_agg(r.rank ORDER BY r.i) INTO p_rank FROM (
          SELECT i, count(*) FILTER (WHERE verdicts[i] IS NULL) OVER (PARTITION BY p_conv[i] ORDER BY i)::int AS rank FROM generate_series(1, total) i
        ) r;
      END IF;
    END IF;

    INSERT INTO messages (env, conv, seq, id, sender, text, reply_to, metadata, attachments, created_at, active_at, thread, extras)
      SELECT c_env[p_conv[i]], nos[p_conv[i]], lasts[p_conv[i]] + p_rank[i], p_id[i], p_sender[i], p_text[i], p_reply[i], p_meta[i], attached[i], ts,
        nullif(active, ts), p_thread[i], p_extras[i]
      FROM generate_series(1, total) i WHERE verdicts[i] IS NULL;
    INSERT INTO sent_ids (env, conv, sender, client_msg_id, seq, created_at)
      SELECT c_env[p_conv[i]], nos[p_conv[i]], coalesce(p_sender[i], 0), p_cmid[i], lasts[p_conv[i]] + p_rank[i], ts
      FROM generate_series(1, total) i WHERE verdicts[i] IS NULL AND p_cmid[i] IS NOT NULL;
    UPDATE conversations c SET last_seq = lasts[k.c] + k.n, ${placeAfterAppend('lasts[k.c] + k.n', 'counts[k.c] + k.n')},
        last_activity_at = greatest(c.last_activity_at, active), last_activity_step = greatest(c.last_activity_step, step)
      FROM (SELECT p_conv[i] AS c, max(p_rank[i]) AS n FROM generate_series(1, total) i WHERE verdicts[i] IS NULL GROUP BY 1) k
      WHERE c.ctid = tids[k.c];
    UPDATE members m SET ${senderAfterSeveral('m', { last: 'lasts[k.c]', count: 'counts[k.c]', own: 'k.own', behalf: 'k.behalf' })},
        last_sent_at = CASE WHEN k.own IS NOT NULL AND marks[k.c] & ${guards.slowMode} <> 0 THEN ts ELSE m.last_sent_at END
      FROM (
        SELECT sender_tids[i] AS tid, p_conv[i] AS c, max(p_rank[i]) FILTER (WHERE p_own[i]) AS own,
          array_agg(p_rank[i]) FILTER (WHERE NOT p_own[i]) AS behalf
        FROM generate_series(1, total) i WHERE verdicts[i] IS NULL AND sender_tids[i] IS NOT NULL GROUP BY 1, 2
      ) k WHERE m.ctid = k.tid;
  END IF;

  IF verdicts IS NULL OR num_nulls(VARIADIC verdicts) > 0 THEN
    noted := tell_of_messages(listening, c_env, nos, lasts, p_conv, p_rank, p_sender, p_id, p_text, p_reply, p_meta, p_files, p_extras, p_reported, attached, verdicts, ts);
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
`;
