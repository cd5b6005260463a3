-- The number of deleted messages of a conversation with a seq above p_seq: the rest of its block at each level
-- (migrations/0007). STABLE, so that it sees what the calling statement sees.
CREATE OR REPLACE FUNCTION deleted_above(p_env int, p_conv bigint, p_seq bigint) RETURNS bigint LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
  RETURN (
    SELECT coalesce(sum(d.n), 0) FROM generate_series(0, 3) k CROSS JOIN LATERAL (
      SELECT sum(x.n) AS n FROM deleted_counts x WHERE x.conv = p_conv AND x.env = p_env AND x.level = k
        AND x.slot > p_seq >> (8 * k)
        AND x.slot < CASE k WHEN 3 THEN 9223372036854775807 ELSE ((p_seq >> (8 * k + 8)) + 1) << 8 END
    ) d
  );
END $$;

-- Counts messages that were deleted just now, with the conversation's row locked: for unread counts, and for analytics.
CREATE OR REPLACE FUNCTION count_deleted(p_env int, p_conv bigint, p_seqs bigint[]) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
  INSERT INTO deleted_counts AS d (conv, level, slot, n, env)
  SELECT p_conv, k, s >> (8 * k), count(*), p_env FROM unnest(p_seqs) s, generate_series(0, 3) k GROUP BY 2, 3 ORDER BY 2, 3
  ON CONFLICT (conv, level, slot, env) DO UPDATE SET n = d.n + excluded.n;
  -- With the time of the messages, by which fill_analytics tells what it counts itself.
  INSERT INTO activity_notes (at, env, counts)
  SELECT max(m.deleted_at), p_env, jsonb_build_object('deletions', count(*))
  FROM messages m WHERE m.env = p_env AND m.conv = p_conv AND m.seq = ANY (p_seqs) HAVING count(*) > 0;
END $$;
