-- Moves delivery marks forward, many at once. A mark lost in a crash comes again with the next one, so it need not wait for the disk.
CREATE OR REPLACE FUNCTION mark_delivered(p_env int[], p_conv text[], p_usr bigint[], p_seq bigint[])
RETURNS TABLE (ord int, conv bigint, delivered_seq bigint) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
  SET LOCAL synchronous_commit = off;
  RETURN QUERY
  WITH target AS MATERIALIZED (
    SELECT u.env, u.usr, c.no AS cno, max(least(u.seq, c.last_seq)) AS seq, min(u.ord) AS ord
    FROM unnest(p_env, p_conv, p_usr, p_seq) WITH ORDINALITY AS u(env, cid, usr, seq, ord)
    JOIN conversations c ON c.env = u.env AND c.id = u.cid AND c.deleted_at IS NULL
    GROUP BY 1, 2, 3
  ), locked AS MATERIALIZED (
    SELECT m.env, m.conv, m.usr, t.seq, t.ord FROM members m
    JOIN target t ON m.env = t.env AND m.conv = t.cno AND m.usr = t.usr
    WHERE m.last_delivered_seq < t.seq ORDER BY m.env, m.conv, m.usr FOR NO KEY UPDATE OF m
  ), moved AS (
    UPDATE members m SET last_delivered_seq = l.seq FROM locked l
    WHERE m.env = l.env AND m.conv = l.conv AND m.usr = l.usr AND m.last_delivered_seq < l.seq
    RETURNING l.ord, m.conv, m.last_delivered_seq
  ) SELECT moved.ord::int, moved.conv, moved.last_delivered_seq FROM moved;
END $$;
