-- Moves delivery marks forward, many at once. A mark that is lost in a crash comes again with the next one, so the
-- commit does not wait for the disk. A row without a seq is a mark whose conversation another transaction has locked:
-- it must be tried again.
CREATE OR REPLACE FUNCTION mark_delivered(p_env int[], p_conv text[], p_usr bigint[], p_seq bigint[])
RETURNS TABLE (ord int, delivered_seq bigint) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  locked bigint[];
BEGIN
  SET LOCAL synchronous_commit = off;
  -- Every writer of a member's row locks its conversation, which lets append_messages write the row without waiting
  -- for it.
  locked := ARRAY(
    SELECT l.no FROM (
      SELECT DISTINCT c.no, c.env FROM unnest(p_env, p_conv, p_usr, p_seq) AS u(env, cid, usr, seq), delivery_mark(u.env, u.cid, u.usr, u.seq) c
    ) w, LATERAL (SELECT c.no FROM conversations c WHERE c.no = w.no AND c.env = w.env FOR NO KEY UPDATE SKIP LOCKED) l);
  RETURN QUERY
  WITH target AS MATERIALIZED (
    SELECT c.no, c.tid, max(c.seq) AS seq, min(u.ord) AS ord
    FROM unnest(p_env, p_conv, p_usr, p_seq) WITH ORDINALITY AS u(env, cid, usr, seq, ord), delivery_mark(u.env, u.cid, u.usr, u.seq) c GROUP BY 1, 2
  ), moved AS (
    UPDATE members m SET last_delivered_seq = t.seq FROM target t WHERE m.ctid = t.tid AND t.no = ANY (locked)
    RETURNING t.ord, t.seq
  ) SELECT m.ord::int, m.seq FROM moved m UNION ALL SELECT t.ord::int, NULL FROM target t WHERE t.no <> ALL (locked);
END $$;

-- The member's row and its new mark; no row if the mark does not move.
CREATE OR REPLACE FUNCTION delivery_mark(p_env int, p_conv text, p_usr bigint, p_seq bigint)
RETURNS TABLE (no bigint, env int, tid tid, seq bigint) LANGUAGE sql STABLE AS $$
  SELECT c.no, c.env, m.tid, least(p_seq, c.last_seq)
  FROM (SELECT x.no, x.env, x.last_seq FROM conversations x WHERE x.id = p_conv AND x.env = p_env AND x.deleted_at IS NULL LIMIT 1) c
  CROSS JOIN LATERAL (
    SELECT x.ctid AS tid FROM members x WHERE x.conv = c.no AND x.usr = p_usr AND x.env = c.env AND x.last_delivered_seq < least(p_seq, c.last_seq) LIMIT 1
  ) m
$$;
