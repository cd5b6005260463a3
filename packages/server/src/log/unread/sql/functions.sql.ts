import { deletedAbove, inConversations, mentionsAbove, mentionsFlag } from './counters.ts';
import type { CountedPlace } from './counters.ts';

/** The SQL functions that count deleted messages and move read marks, for each kind of place. */

const deletions = ({ deleted, column, functions }: CountedPlace): string => `
-- The number of deleted messages of a place with a seq above p_seq: the rest of its block at each level
-- (migrations/0007). STABLE, so that it sees what the calling statement sees.
CREATE OR REPLACE FUNCTION ${functions.deletedAbove}(p_env int, p_conv bigint, p_seq bigint) RETURNS bigint LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
  RETURN (
    SELECT coalesce(sum(d.n), 0) FROM generate_series(0, 3) k CROSS JOIN LATERAL (
      SELECT sum(x.n) AS n FROM ${deleted} x WHERE x.${column} = p_conv AND x.env = p_env AND x.level = k
        AND x.slot > p_seq >> (8 * k)
        AND x.slot < CASE k WHEN 3 THEN 9223372036854775807 ELSE ((p_seq >> (8 * k + 8)) + 1) << 8 END
    ) d
  );
END $$;

-- Counts messages that were deleted just now, with the row of the place locked: for unread counts, and for analytics.
CREATE OR REPLACE FUNCTION ${functions.countDeleted}(p_env int, p_conv bigint, p_seqs bigint[]) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
  INSERT INTO ${deleted} AS d (${column}, level, slot, n, env)
  SELECT p_conv, k, s >> (8 * k), count(*), p_env FROM unnest(p_seqs) s, generate_series(0, 3) k GROUP BY 2, 3 ORDER BY 2, 3
  ON CONFLICT (${column}, level, slot, env) DO UPDATE SET n = d.n + excluded.n;
  -- With the time of the messages, by which fill_analytics tells what it counts itself.
  INSERT INTO activity_notes (at, env, counts)
  SELECT max(m.deleted_at), p_env, jsonb_build_object('deletions', count(*))
  FROM messages m WHERE m.env = p_env AND m.${column} = p_conv AND m.seq = ANY (p_seqs) HAVING count(*) > 0;
END $$;
`;

const readMarks = (counted: CountedPlace): string => {
  const { places, readers, column, functions } = counted;
  const above = (seq: string): string =>
    deletedAbove({ env: 'i.env', no: 'i.cno', lastDeleted: 'i.last_deleted_seq' }, seq, counted);
  return `
-- Moves read marks forward, many at once. Counting happens under the conversation's lock, so that no delete comes in
-- between. A conversation that another transaction has locked is 'blocked'; with p_wait_ms it is waited for that many
-- milliseconds.
CREATE OR REPLACE FUNCTION ${functions.markRead}(p_env int[], p_conv text[], p_usr bigint[], p_seq bigint[], p_wait_ms int)
RETURNS TABLE (ord int, status text, conv bigint, read_seq bigint, unread bigint, mentions bigint, changed boolean) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  ts timestamptz(3);
  active timestamptz(3);
  locked bigint[];
BEGIN
  IF p_wait_ms IS NOT NULL THEN
    PERFORM set_config('lock_timeout', p_wait_ms::text, true);
    PERFORM 1 FROM unnest(p_env, p_conv) AS w(env, id), LATERAL (
      SELECT 1 FROM ${places} c WHERE c.id = w.id AND c.env = w.env FOR NO KEY UPDATE) c;
  END IF;
  locked := ARRAY(
    SELECT c.no FROM (SELECT DISTINCT env, id FROM unnest(p_env, p_conv) AS t(env, id)) w, LATERAL (
      SELECT c.no FROM ${places} c WHERE c.id = w.id AND c.env = w.env AND c.deleted_at IS NULL FOR NO KEY UPDATE SKIP LOCKED) c);
  ts := clock_timestamp();
  active := activity_now();
  RETURN QUERY
  WITH item AS MATERIALIZED (
    SELECT u.ord, u.env, u.usr, c.no AS cno, c.message_count, m.last_read_seq, m.read_count, m.own_unread,
      CASE WHEN c.no IS NULL THEN 'not_found' WHEN c.no <> ALL (locked) THEN 'blocked' WHEN m.usr IS NULL THEN 'not_member' ELSE 'ok' END AS verdict,
      greatest(m.last_read_seq, max(least(u.seq, c.last_seq)) OVER (PARTITION BY u.env, c.no, u.usr)) AS target,
      c.last_message_seq, c.last_deleted_seq, c.flags
    FROM unnest(p_env, p_conv, p_usr, p_seq) WITH ORDINALITY AS u(env, cid, usr, seq, ord)
    LEFT JOIN LATERAL (
      SELECT * FROM ${places} WHERE env = u.env AND id = u.cid AND deleted_at IS NULL LIMIT 1
    ) c ON true
    LEFT JOIN LATERAL (
      SELECT * FROM ${readers} WHERE env = u.env AND ${column} = c.no AND usr = u.usr LIMIT 1
    ) m ON true
  ), counted AS MATERIALIZED (
    -- Deleted messages count as read once the mark is above them; those still above it are subtracted from the unread
    -- ones.
    SELECT DISTINCT ON (i.env, i.cno, i.usr) i.env, i.cno, i.usr, i.target, i.last_read_seq, d.above,
      CASE WHEN i.target >= coalesce(i.last_message_seq, 0) THEN i.message_count - d.above
        ELSE i.read_count + coalesce(x.live, 0) + d.before - d.above END AS read_count,
      CASE WHEN i.target >= coalesce(i.last_message_seq, 0) THEN 0
        ELSE i.own_unread - coalesce(x.own, 0) END AS own_unread
    FROM item i CROSS JOIN LATERAL (
      SELECT ${above('i.last_read_seq')} AS before, ${above('i.target')} AS above
    ) d LEFT JOIN LATERAL (
      SELECT count(*) AS live, count(*) FILTER (WHERE s.sender = i.usr) AS own FROM messages s
      WHERE i.target > i.last_read_seq AND i.target < i.last_message_seq
        AND s.env = i.env AND s.${column} = i.cno AND s.seq > i.last_read_seq AND s.seq <= i.target AND s.deleted_at IS NULL
    ) x ON true
    WHERE i.verdict = 'ok'
  ), moved AS (
    UPDATE ${readers} m SET last_read_seq = k.target, read_count = k.read_count, own_unread = k.own_unread,
      own_activity_at = active, own_activity_step = activity_step(active)
    FROM counted k WHERE k.target > k.last_read_seq AND m.env = k.env AND m.${column} = k.cno AND m.usr = k.usr
  ), told AS MATERIALIZED (
    SELECT tell_of_reads(array_agg(k.env), array_agg(k.cno), array_agg(k.usr), array_agg(k.target), array_agg(k.target > k.last_read_seq), ts)
    FROM counted k HAVING count(*) > 0
  )
  SELECT i.ord::int, i.verdict, i.cno, k.target,
    i.message_count - k.read_count - k.own_unread - k.above,
    ${mentionsAbove({ env: 'i.env', no: 'i.cno', flags: 'i.flags' }, 'i.usr', 'k.target')},
    k.target > k.last_read_seq
  FROM item i LEFT JOIN counted k ON k.env = i.env AND k.cno = i.cno AND k.usr = i.usr LEFT JOIN told ON true;
END $$;
`;
};

/** SQL for whether a user does not block the sender of a message. */
const unblocked = (usr: string, sender: string): string =>
  `NOT EXISTS (SELECT 1 FROM blocks k WHERE k.usr = ${usr} AND k.blocked = ${sender} AND k.env = p_env)`;

const mentions = `
-- The number of messages above p_seq that mention a member, by name or all together (usr 0). One that does both counts once; one's
-- own, and those of users whom the member blocks, count not at all.
CREATE OR REPLACE FUNCTION mentions_above(p_env int, p_conv bigint, p_usr bigint, p_seq bigint) RETURNS bigint LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
  RETURN (
    SELECT count(DISTINCT x.seq) FROM (VALUES (p_usr), (0)) w(usr) CROSS JOIN LATERAL (
      SELECT r.seq FROM mentions r WHERE r.conv = p_conv AND r.usr = w.usr AND r.seq > p_seq AND r.env = p_env
        AND r.thread IS NULL AND r.sender IS DISTINCT FROM p_usr AND ${unblocked('p_usr', 'r.sender')} OFFSET 0
    ) x
  );
END $$;

-- Notes whom a message mentions: those of the users who are members and do not block its sender, and 0 for all together. The
-- conversation is locked.
CREATE OR REPLACE FUNCTION note_mentions(p_env int, p_conv bigint, p_seq bigint, p_sender bigint, p_at timestamptz, p_users bigint[])
RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
  INSERT INTO mentions (env, conv, usr, seq, sender, at)
    SELECT p_env, p_conv, w.usr, p_seq, p_sender, p_at FROM (SELECT DISTINCT usr FROM unnest(p_users) u(usr)) w
    WHERE w.usr = 0 OR EXISTS (SELECT 1 FROM members m WHERE m.conv = p_conv AND m.usr = w.usr AND m.env = p_env)
      AND ${unblocked('w.usr', 'p_sender')}
    ON CONFLICT DO NOTHING;
  IF FOUND THEN
    UPDATE conversations c SET flags = c.flags | ${mentionsFlag} WHERE c.no = p_conv AND c.env = p_env AND c.flags & ${mentionsFlag} = 0;
  END IF;
END $$;

-- The users in the mentions of a message's extras, as numbers; 0 stands for everyone and here.
CREATE OR REPLACE FUNCTION mentioned_users(p_extras text) RETURNS bigint[] LANGUAGE sql IMMUTABLE AS $$
  SELECT array_agg(CASE jsonb_typeof(e -> 0) WHEN 'number' THEN (e ->> 0)::bigint ELSE 0 END) FROM jsonb_array_elements(p_extras::jsonb -> 'mentions') e
$$;
`;

export const sql =
  mentions + [inConversations].map((counted) => deletions(counted) + readMarks(counted)).join('');
