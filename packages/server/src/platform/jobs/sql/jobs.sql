CREATE OR REPLACE FUNCTION enqueue_jobs(p_queue text, p_width int, p_key bigint[], p_ref bigint[], p_data jsonb[], p_run_at timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO jobs (queue, key, run_at, ref, data)
    SELECT p_queue, u.key, p_run_at, u.ref, u.data FROM unnest(p_key, p_ref, p_data) u(key, ref, data);
  INSERT INTO job_lanes AS l (queue, key, width, next_at)
    SELECT p_queue, k, p_width, p_run_at FROM (SELECT DISTINCT unnest(p_key) AS k) x ORDER BY k
    ON CONFLICT (queue, key) DO UPDATE SET next_at = least(l.next_at, excluded.next_at);
END $$;

-- When a lane should be looked at next: when its earliest job is due or, if the lane is full, when its earliest lease
-- ends.
CREATE OR REPLACE FUNCTION lane_next(p_queue text, p_key bigint, p_width int, p_now timestamptz) RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT coalesce(CASE WHEN x.running >= p_width THEN x.until
    ELSE (SELECT j.run_at FROM jobs j WHERE j.queue = p_queue AND j.key = p_key ORDER BY j.run_at LIMIT 1) END, 'infinity')
  FROM (SELECT count(*) AS running, min(run_at) AS until FROM jobs
    WHERE queue = p_queue AND key = p_key AND leased AND run_at > p_now) x
$$;

-- Claims due jobs: lanes take turns, each up to its width. The lanes are locked first; the next statement then sees
-- all earlier claims, so the width holds across processes.
CREATE OR REPLACE FUNCTION claim_jobs(p_queue text, p_max int, p_lease_ms int)
RETURNS TABLE (no bigint, key bigint, claims int, ref bigint, data jsonb) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  keys bigint[];
  ts timestamptz;
BEGIN
  SELECT array_agg(x.key ORDER BY x.served_at) INTO keys FROM (
    SELECT l.key, l.served_at FROM job_lanes l WHERE l.queue = p_queue AND l.next_at <= clock_timestamp()
      ORDER BY l.served_at LIMIT least(p_max, 200) FOR UPDATE SKIP LOCKED
  ) x;
  IF keys IS NULL THEN RETURN; END IF;
  ts := clock_timestamp();
  RETURN QUERY
  WITH picked AS MATERIALIZED (
    SELECT p.no FROM unnest(keys) WITH ORDINALITY k(key, ord)
    JOIN job_lanes l ON l.queue = p_queue AND l.key = k.key
    CROSS JOIN LATERAL (
      SELECT j.no, row_number() OVER () AS rank FROM (
        SELECT i.no FROM jobs i WHERE i.queue = p_queue AND i.key = k.key AND i.run_at <= ts ORDER BY i.run_at
        LIMIT greatest(0, l.width - (SELECT count(*) FROM jobs r
          WHERE r.queue = p_queue AND r.key = k.key AND r.leased AND r.run_at > ts))
        FOR UPDATE SKIP LOCKED
      ) j
    ) p ORDER BY p.rank, k.ord LIMIT p_max
  )
  UPDATE jobs j SET run_at = ts + p_lease_ms * interval '1 millisecond', leased = true, claims = j.claims + 1
    FROM picked WHERE j.no = picked.no RETURNING j.no, j.key, j.claims, j.ref, j.data;
  UPDATE job_lanes l SET served_at = ts, next_at = lane_next(p_queue, l.key, l.width, ts)
    WHERE l.queue = p_queue AND l.key = ANY(keys);
END $$;

-- Ends claimed jobs: those without a time are done, the others run again at that time. A job that was claimed again
-- meanwhile stays unchanged.
CREATE OR REPLACE FUNCTION finish_jobs(p_queue text, p_no bigint[], p_key bigint[], p_claims int[], p_run_at timestamptz[], p_width int[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM job_lanes l WHERE l.queue = p_queue AND l.key = ANY(p_key) ORDER BY l.key FOR UPDATE;
  DELETE FROM jobs j USING unnest(p_no, p_claims, p_run_at) u(no, claims, run_at)
    WHERE j.no = u.no AND j.claims = u.claims AND u.run_at IS NULL;
  UPDATE jobs j SET run_at = u.run_at, leased = false FROM unnest(p_no, p_claims, p_run_at) u(no, claims, run_at)
    WHERE j.no = u.no AND j.claims = u.claims AND u.run_at IS NOT NULL;
  -- A lane shrinks at once to the smallest width that any of its jobs names, and grows towards it by one per job.
  UPDATE job_lanes l SET width = u.width, next_at = lane_next(p_queue, l.key, u.width, clock_timestamp())
    FROM (
      SELECT y.key, least(coalesce(min(x.width), y.width), y.width + count(x.width))::int AS width
      FROM unnest(p_key, p_width) x(key, width) JOIN job_lanes y ON y.queue = p_queue AND y.key = x.key GROUP BY y.key, y.width
    ) u WHERE l.queue = p_queue AND l.key = u.key;
END $$;
