-- Jobs move along the index of their lane whenever they are claimed or put off, and leave dead entries behind. These stay
-- for as long as any transaction of the database is open (a backup, say). So each lane knows where its jobs begin, and
-- nobody reads the entries before that.

CREATE OR REPLACE FUNCTION enqueue_jobs(p_queue text, p_width int, p_key bigint[], p_ref bigint[], p_data jsonb[], p_run_at timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO jobs (queue, key, run_at, ref, data)
    SELECT p_queue, u.key, p_run_at, u.ref, u.data FROM unnest(p_key, p_ref, p_data) u(key, ref, data);
  -- A lane that need not change is locked all the same, so that whoever claims from it next sees these jobs.
  INSERT INTO job_lanes AS l (queue, key, width, next_at, first_at, first_leased_at)
    SELECT p_queue, k, p_width, p_run_at, p_run_at, 'infinity' FROM (SELECT DISTINCT unnest(p_key) AS k) x ORDER BY k
    ON CONFLICT (queue, key) DO UPDATE SET next_at = least(l.next_at, excluded.next_at), first_at = least(l.first_at, excluded.first_at)
      WHERE l.next_at > excluded.next_at OR l.first_at > excluded.first_at;
END $$;

-- Where the jobs of a lane begin now, given where they began at the earliest, and when the lane should be looked at
-- next: when its earliest job is due or, if the lane is full, when its earliest lease ends.
CREATE OR REPLACE FUNCTION lane_marks(
  p_queue text, p_key bigint, p_width int, p_now timestamptz, INOUT first_at timestamptz, INOUT first_leased_at timestamptz,
  OUT next_at timestamptz
) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_variable
DECLARE
  running int;
  until timestamptz;
BEGIN
  first_at := coalesce((SELECT j.run_at FROM jobs j
    WHERE j.queue = p_queue AND j.key = p_key AND j.run_at >= first_at ORDER BY j.run_at LIMIT 1), 'infinity');
  first_leased_at := coalesce((SELECT j.run_at FROM jobs j
    WHERE j.queue = p_queue AND j.key = p_key AND j.leased AND j.run_at >= first_leased_at ORDER BY j.run_at LIMIT 1), 'infinity');
  SELECT count(*), min(j.run_at) INTO running, until FROM jobs j
    WHERE j.queue = p_queue AND j.key = p_key AND j.leased AND j.run_at > p_now AND j.run_at >= first_leased_at;
  next_at := CASE WHEN running >= p_width THEN coalesce(until, 'infinity') ELSE first_at END;
END $$;

-- Claims due jobs: lanes take turns, each up to its width. The lanes are locked first; the next statement then sees
-- all earlier claims, so the width holds across processes.
CREATE OR REPLACE FUNCTION claim_jobs(p_queue text, p_max int, p_lease_ms int)
RETURNS TABLE (no bigint, key bigint, claims int, ref bigint, data jsonb) LANGUAGE plpgsql SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
  keys bigint[];
  ts timestamptz;
  lease timestamptz;
BEGIN
  SELECT array_agg(x.key ORDER BY x.served_at) INTO keys FROM (
    SELECT l.key, l.served_at FROM job_lanes l WHERE l.queue = p_queue AND l.next_at <= clock_timestamp()
      ORDER BY l.served_at LIMIT least(p_max, 200) FOR UPDATE SKIP LOCKED
  ) x;
  IF keys IS NULL THEN RETURN; END IF;
  ts := clock_timestamp();
  lease := ts + p_lease_ms * interval '1 millisecond';
  RETURN QUERY
  WITH picked AS MATERIALIZED (
    SELECT p.no FROM unnest(keys) WITH ORDINALITY k(key, ord)
    JOIN job_lanes l ON l.queue = p_queue AND l.key = k.key
    CROSS JOIN LATERAL (
      SELECT j.no, row_number() OVER () AS rank FROM (
        SELECT i.no FROM jobs i WHERE i.queue = p_queue AND i.key = k.key AND i.run_at BETWEEN l.first_at AND ts ORDER BY i.run_at
        LIMIT greatest(0, l.width - (SELECT count(*) FROM jobs r
          WHERE r.queue = p_queue AND r.key = k.key AND r.leased AND r.run_at > ts AND r.run_at >= l.first_leased_at))
        FOR UPDATE SKIP LOCKED
      ) j
    ) p ORDER BY p.rank, k.ord LIMIT p_max
  )
  UPDATE jobs j SET run_at = lease, leased = true, claims = j.claims + 1
    FROM picked WHERE j.no = picked.no RETURNING j.no, j.key, j.claims, j.ref, j.data;
  UPDATE job_lanes l SET served_at = ts, (first_at, first_leased_at, next_at) =
      (SELECT n.* FROM lane_marks(p_queue, l.key, l.width, ts, l.first_at, least(l.first_leased_at, lease)) n)
    WHERE l.queue = p_queue AND l.key = ANY(keys);
END $$;

-- Prolongs the leases of claimed jobs that are under way. The marks of their lane are lower bounds, which still hold.
CREATE OR REPLACE FUNCTION renew_jobs(p_no bigint[], p_claims int[], p_lease_ms int) RETURNS void LANGUAGE sql AS $$
  UPDATE jobs j SET run_at = clock_timestamp() + p_lease_ms * interval '1 millisecond'
    FROM unnest(p_no, p_claims) u(no, claims) WHERE j.no = u.no AND j.claims = u.claims AND j.leased
$$;

-- Ends claimed jobs: those without a time are done, the others run again at that time. A job that was claimed again
-- meanwhile stays unchanged.
CREATE OR REPLACE FUNCTION finish_jobs(p_queue text, p_no bigint[], p_key bigint[], p_claims int[], p_run_at timestamptz[], p_width int[])
RETURNS void LANGUAGE plpgsql SET enable_bitmapscan = off AS $$
BEGIN
  PERFORM 1 FROM job_lanes l WHERE l.queue = p_queue AND l.key = ANY(p_key) ORDER BY l.key FOR UPDATE;
  DELETE FROM jobs j USING unnest(p_no, p_claims, p_run_at) u(no, claims, run_at)
    WHERE j.no = u.no AND j.claims = u.claims AND u.run_at IS NULL;
  UPDATE jobs j SET run_at = u.run_at, leased = false FROM unnest(p_no, p_claims, p_run_at) u(no, claims, run_at)
    WHERE j.no = u.no AND j.claims = u.claims AND u.run_at IS NOT NULL;
  -- A lane shrinks at once to the smallest width that any of its jobs names, and grows towards it by one per job.
  UPDATE job_lanes l SET width = least(coalesce(u.most, l.width), l.width + u.grown), (first_at, first_leased_at, next_at) = (
      SELECT n.* FROM lane_marks(p_queue, l.key, least(coalesce(u.most, l.width), l.width + u.grown), clock_timestamp(),
        least(l.first_at, u.run_at), l.first_leased_at) n)
    FROM (
      SELECT x.key, min(x.width) AS most, count(x.width)::int AS grown, min(x.run_at) AS run_at
      FROM unnest(p_key, p_width, p_run_at) x(key, width, run_at) GROUP BY x.key
    ) u WHERE l.queue = p_queue AND l.key = u.key;
END $$;
