import { limits } from '@parley/protocol';
import { guards } from './guards.ts';

export const sql = `
-- The rules that append_messages follows. The first three return sets and consist of one
-- statement, so that the planner inlines them into the calling statement; their LIMIT keeps it from turning them into a join
-- over the whole table. Each is one index look-up.

-- messages#dedup: the message that this sender has sent to the conversation under the same clientMsgId in the last 48 hours. What is
-- longer than a clientMsgId stands for a server's Idempotency-Key (features/messages/draft.ts), which is kept for 24 (api#idempotency).
CREATE OR REPLACE FUNCTION sent_before(p_env int, p_conv bigint, p_sender bigint, p_cmid text, p_at timestamptz)
RETURNS TABLE (seq bigint) LANGUAGE sql STABLE AS $$
  SELECT s.seq FROM sent_ids s WHERE s.conv = p_conv AND s.sender = coalesce(p_sender, 0) AND s.client_msg_id = p_cmid AND s.env = p_env
    AND s.created_at > p_at - CASE WHEN length(p_cmid) > ${limits.clientMsgIdCharacters} THEN interval '24 hours' ELSE interval '48 hours' END
  UNION ALL
  SELECT d.seq FROM dedup d WHERE d.conv = p_conv AND d.sender = coalesce(p_sender, 0) AND d.client_msg_id = p_cmid AND d.env = p_env
    AND d.created_at > p_at - CASE WHEN length(p_cmid) > ${limits.clientMsgIdCharacters} THEN interval '24 hours' ELSE interval '48 hours' END
  LIMIT 1
$$;

-- The member who sends, and until when it is silenced. A send may run slightly longer than its user exists: an erased user is
-- no member, and a deactivated one is silenced. Nearly no user is in the index that the inner query asks (users_refused).
CREATE OR REPLACE FUNCTION sending_member(p_env int, p_conv bigint, p_usr bigint)
RETURNS TABLE (tid tid, silenced timestamptz) LANGUAGE sql STABLE AS $$
  SELECT m.ctid, greatest(m.silenced_until, u.silenced_until, u.deactivated_until) FROM members m
    LEFT JOIN LATERAL (
      SELECT x.erased_at, x.silenced_until, CASE WHEN x.deactivated_at IS NOT NULL THEN coalesce(x.deactivated_until, 'infinity') END AS deactivated_until
      FROM users x WHERE x.no = m.usr AND (x.erased_at IS NOT NULL OR x.silenced_until IS NOT NULL OR x.deactivated_at IS NOT NULL) LIMIT 1
    ) u ON true
    WHERE m.conv = p_conv AND m.usr = p_usr AND m.env = p_env AND u.erased_at IS NULL LIMIT 1
$$;

-- A refusal that ends after some milliseconds, which stand behind it; without an end, its name alone.
CREATE OR REPLACE FUNCTION refused_until(p_name text, p_until timestamptz, p_at timestamptz) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN isfinite(p_until) THEN p_name || ' ' || ceil(extract(epoch FROM p_until - p_at) * 1000)::bigint ELSE p_name END
$$;

-- The message that a reply refers to: one of the same conversation, possibly a tombstone. ("+ 0" makes it search by
-- id, not by conversation.)
CREATE OR REPLACE FUNCTION reply_target(p_env int, p_conv bigint, p_id text)
RETURNS TABLE (seq bigint) LANGUAGE sql STABLE AS $$
  SELECT r.seq FROM messages r WHERE r.id = p_id AND r.env = p_env AND r.conv + 0 = p_conv AND NOT r.hard LIMIT 1
$$;

-- How long a member waits between two messages; null if there is no slow mode, or the member is exempt.
CREATE OR REPLACE FUNCTION slow_mode(p_env int, p_conv bigint, p_member tid) RETURNS interval LANGUAGE sql STABLE AS $$
  SELECT (c.rules::json ->> 'slowModeSeconds')::int * interval '1 second' FROM conversations c, members m
  WHERE c.no = p_conv AND c.env = p_env AND m.ctid = p_member AND m.role = 'member'
$$;

-- Why a message is not written; null if it is. Another rule that needs the store has its place here: it is asked under the
-- conversation's lock, for messages that something already known about them makes doubtful.
-- p_conv is null if the conversation could not be locked, p_member if the sender is none. p_flags are those of the
-- conversation (guards.ts), which bind users alone, as a silence does: p_own is false for what a server sends.
CREATE OR REPLACE FUNCTION append_verdict(
  p_env int, p_conv_id text, p_conv bigint, p_original bigint, p_sender bigint, p_member tid, p_reply text,
  p_own boolean, p_flags int, p_silenced timestamptz, p_at timestamptz
) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
  free timestamptz; -- when slow mode lets the member send again
BEGIN
  IF p_conv IS NULL THEN
    PERFORM 1 FROM conversations c WHERE c.id = p_conv_id AND c.env = p_env AND c.deleted_at IS NULL;
    RETURN CASE WHEN FOUND THEN 'blocked' ELSE 'not_found' END;
  END IF;
  IF p_original IS NOT NULL THEN RETURN 'duplicate'; END IF;
  IF p_sender IS NOT NULL AND p_member IS NULL THEN RETURN 'not_member'; END IF;
  IF p_own AND p_flags & ${guards.blockedPair} <> 0 THEN RETURN 'pair_blocked'; END IF;
  IF p_own AND p_silenced > p_at THEN RETURN refused_until('restricted', p_silenced, p_at); END IF;
  IF p_own AND p_flags & ${guards.posting} <> 0 AND EXISTS (SELECT 1 FROM members m WHERE m.ctid = p_member AND m.role = 'member') THEN
    RETURN 'posting';
  END IF;
  IF p_own AND p_flags & ${guards.slowMode} <> 0 THEN
    SELECT m.last_sent_at + slow_mode(p_env, p_conv, p_member) INTO free FROM members m WHERE m.ctid = p_member;
    IF free > p_at THEN RETURN refused_until('slow', free, p_at); END IF;
  END IF;
  IF p_reply IS NOT NULL AND NOT EXISTS (SELECT 1 FROM reply_target(p_env, p_conv, p_reply)) THEN RETURN 'reply_not_found'; END IF;
  RETURN NULL;
END $$;

-- The attachments that messages name, each as a JSON array of ids: only ready ones of the message's own conversation,
-- uploaded by its sender (or by the server, in a server's send), and each only once. Returns their JSON, and verdicts
-- for messages that were refused; the rows stay locked. If another transaction has locked an attachment, all messages
-- of the batch for its conversation are 'blocked', so that the order stays.
CREATE OR REPLACE FUNCTION take_attachments(
  c_env int[], c_no bigint[], p_conv int[], p_sender bigint[], p_own boolean[], p_files text[],
  INOUT verdicts text[], OUT attached text[]
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  i int;
  wanted int;
  ready int;
  locked int;
  files text;
  taken text[] := '{}';
BEGIN
  attached := array_fill(NULL::text, ARRAY[cardinality(p_files)]);
  FOR i IN SELECT k FROM generate_series(1, cardinality(p_files)) k WHERE p_files[k] IS NOT NULL AND verdicts[k] IS NULL ORDER BY k LOOP
    SELECT count(*), count(a.id), count(l.id),
      json_agg(json_strip_nulls(json_build_object('id', l.id, 'name', l.name, 'size', l.size, 'mimeType', l.mime_type,
        'width', l.width, 'height', l.height, 'durationMs', l.duration_ms, 'waveform', l.waveform, 'status', 'ready')) ORDER BY f.pos)::text
    INTO wanted, ready, locked, files
    FROM json_array_elements_text(p_files[i]::json) WITH ORDINALITY AS f(id, pos)
    LEFT JOIN LATERAL (
      SELECT x.id FROM attachments x WHERE x.env = c_env[p_conv[i]] AND x.id = f.id AND x.conv = c_no[p_conv[i]]
        AND x.ready_at IS NOT NULL AND x.message IS NULL AND (x.uploader = p_sender[i] OR x.uploader IS NULL AND NOT p_own[i])
        AND x.env || ' ' || x.id <> ALL (taken) LIMIT 1
    ) a ON true
    LEFT JOIN LATERAL (
      SELECT x.* FROM attachments x WHERE x.env = c_env[p_conv[i]] AND x.id = a.id FOR UPDATE SKIP LOCKED
    ) l ON true;
    IF ready < wanted THEN
      verdicts[i] := 'attachment_not_ready';
    ELSIF locked < ready THEN
      SELECT array_agg(CASE WHEN verdicts[k] IS NULL AND p_conv[k] = p_conv[i] THEN 'blocked' ELSE verdicts[k] END ORDER BY k)
        INTO verdicts FROM generate_series(1, cardinality(p_conv)) k;
    ELSE
      attached[i] := files;
      taken := taken || ARRAY(SELECT c_env[p_conv[i]] || ' ' || f FROM json_array_elements_text(p_files[i]::json) f);
    END IF;
  END LOOP;
END $$;

-- Kinds of messages that analytics distinguishes, as bits: 1 attachments, 2 no text, 4 a reply. Null if all are plain
-- text.
CREATE OR REPLACE FUNCTION message_kinds(p_text text[], p_reply text[], p_meta text[], p_files text[]) RETURNS int[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF p_reply IS NULL AND p_meta IS NULL AND p_files IS NULL THEN RETURN NULL; END IF;
  RETURN ARRAY(SELECT (p_files[i] IS NOT NULL)::int + 2 * (p_text[i] IS NULL)::int + 4 * (p_reply[i] IS NOT NULL)::int
    FROM generate_series(1, cardinality(p_text)) i ORDER BY i);
END $$;
`;
