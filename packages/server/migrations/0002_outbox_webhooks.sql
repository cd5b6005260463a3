-- What must happen after a commit.

-- An id of the usual form: the time as in a ULID, then 16 random characters (hexadecimal ones, which are cheap here).
CREATE FUNCTION ulid_time(at timestamptz) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + ((floor(extract(epoch FROM at) * 1000)::bigint >> (45 - 5 * i)) & 31)::int, 1), '' ORDER BY i)
  FROM generate_series(0, 9) i
$$;
CREATE FUNCTION make_id(prefix text, at timestamptz) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT prefix || ulid_time(at) || right(replace(gen_random_uuid()::text, '-', ''), 16)
$$;

-- Who waits for what happens in an environment, as bits: 1 webhooks, 2 push, 4 webhooks that want message.read.
-- Without a listener nothing is noted.
ALTER TABLE environments ADD COLUMN listeners int NOT NULL DEFAULT 0;

-- One row per committed change, written in the transaction of its cause and gone once it is handed out.
-- Users and messages are referred to by number, and no text is kept: what is sent is rendered when it is sent,
-- so edits, hard deletes and erasure leave nothing behind here.
CREATE TABLE outbox (
  no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text COLLATE "C" NOT NULL, -- evt_: the same on every attempt and replay
  env int NOT NULL,
  type text NOT NULL,
  key text COLLATE "C",         -- of rows that take up later changes until they are due
  conv bigint,
  seq bigint,
  message bigint,
  users bigint[],
  actor bigint,
  data text,
  sealed bytea,                 -- the id of an erased user, under the master key
  created_at timestamptz(3) NOT NULL,
  due_at timestamptz(3) NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX outbox_due ON outbox (due_at);
CREATE UNIQUE INDEX outbox_key ON outbox (env, key) WHERE key IS NOT NULL;

-- Jobs. A lane is one key of a queue (a webhook endpoint, say): it bounds how many of its jobs run at once and takes its turn
-- among the others, so that one that is slow delays no other.
-- A claimed job is `leased` and due again when the lease ends, so a crash needs no repair.
CREATE TABLE jobs (
  no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  queue text COLLATE "C" NOT NULL,
  key bigint NOT NULL,
  run_at timestamptz NOT NULL,
  leased boolean NOT NULL DEFAULT false,
  claims int NOT NULL DEFAULT 0,
  ref bigint,
  data jsonb
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX jobs_lane ON jobs (queue, key, run_at);
CREATE INDEX jobs_leased ON jobs (queue, key, run_at) WHERE leased;

CREATE TABLE job_lanes (
  queue text COLLATE "C" NOT NULL,
  key bigint NOT NULL,
  width int NOT NULL,                -- jobs at once
  next_at timestamptz NOT NULL,      -- when there may be something to claim
  served_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (queue, key)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX job_lanes_next ON job_lanes (queue, next_at);

CREATE FUNCTION enqueue_jobs(p_queue text, p_width int, p_key bigint[], p_ref bigint[], p_data jsonb[], p_run_at timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO jobs (queue, key, run_at, ref, data)
    SELECT p_queue, u.key, p_run_at, u.ref, u.data FROM unnest(p_key, p_ref, p_data) u(key, ref, data);
  INSERT INTO job_lanes AS l (queue, key, width, next_at)
    SELECT p_queue, k, p_width, p_run_at FROM (SELECT DISTINCT unnest(p_key) AS k) x ORDER BY k
    ON CONFLICT (queue, key) DO UPDATE SET next_at = least(l.next_at, excluded.next_at);
END $$;

-- When a lane should be looked at next: its earliest job, or, when it is full, the end of its earliest lease.
CREATE FUNCTION lane_next(p_queue text, p_key bigint, p_width int, p_now timestamptz) RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT coalesce(CASE WHEN x.running >= p_width THEN x.until
    ELSE (SELECT j.run_at FROM jobs j WHERE j.queue = p_queue AND j.key = p_key ORDER BY j.run_at LIMIT 1) END, 'infinity')
  FROM (SELECT count(*) AS running, min(run_at) AS until FROM jobs
    WHERE queue = p_queue AND key = p_key AND leased AND run_at > p_now) x
$$;

-- Claims due jobs: lanes in turn, each up to its width. The lanes are locked first; the next statement then sees all that
-- was claimed before, so the width holds across processes.
CREATE FUNCTION claim_jobs(p_queue text, p_max int, p_lease_ms int)
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

-- Ends claimed jobs: without a time they are done, with one they run again then. A job claimed anew meanwhile stays as it is.
CREATE FUNCTION finish_jobs(p_queue text, p_no bigint[], p_key bigint[], p_claims int[], p_run_at timestamptz[], p_width int[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM job_lanes l WHERE l.queue = p_queue AND l.key = ANY(p_key) ORDER BY l.key FOR UPDATE;
  DELETE FROM jobs j USING unnest(p_no, p_claims, p_run_at) u(no, claims, run_at)
    WHERE j.no = u.no AND j.claims = u.claims AND u.run_at IS NULL;
  UPDATE jobs j SET run_at = u.run_at, leased = false FROM unnest(p_no, p_claims, p_run_at) u(no, claims, run_at)
    WHERE j.no = u.no AND j.claims = u.claims AND u.run_at IS NOT NULL;
  UPDATE job_lanes l SET width = coalesce(u.width, l.width), next_at = lane_next(p_queue, l.key, coalesce(u.width, l.width), clock_timestamp())
    FROM (SELECT key, min(width) AS width FROM unnest(p_key, p_width) x(key, width) GROUP BY key) u
    WHERE l.queue = p_queue AND l.key = u.key;
END $$;

-- Webhooks.
CREATE TABLE webhook_endpoints (
  no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  env int NOT NULL REFERENCES environments,
  id text COLLATE "C" NOT NULL UNIQUE,
  url text NOT NULL,
  events text[] NOT NULL,
  description text,
  status text NOT NULL DEFAULT 'enabled' CHECK (status IN ('enabled', 'disabled')),
  disabled_at timestamptz(3),
  disabled_reason text,
  failing_since timestamptz(3), -- the first failure after the last success
  created_at timestamptz(3) NOT NULL DEFAULT now()
);
CREATE INDEX webhook_endpoints_env ON webhook_endpoints (env, id);
CREATE INDEX webhook_endpoints_failing ON webhook_endpoints (failing_since) WHERE failing_since IS NOT NULL;

CREATE TABLE webhook_secrets (
  no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  endpoint bigint NOT NULL REFERENCES webhook_endpoints ON DELETE CASCADE,
  secret bytea NOT NULL, -- sealed under the master key
  expires_at timestamptz(3) -- null: the current one
);
CREATE INDEX webhook_secrets_endpoint ON webhook_secrets (endpoint);

-- The delivery log. Like the outbox it refers to what it tells of; rows go after the replay window.
CREATE TABLE webhook_deliveries (
  no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text COLLATE "C" NOT NULL,
  env int NOT NULL,
  endpoint bigint NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  type text NOT NULL,
  conv bigint,
  seq bigint,
  message bigint,
  users bigint[],
  actor bigint,
  data text,
  sealed bytea,
  event_at timestamptz(3) NOT NULL,
  created_at timestamptz(3) NOT NULL,
  status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'succeeded', 'failed')),
  attempts jsonb NOT NULL DEFAULT '[]',
  next_at timestamptz(3)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX webhook_deliveries_log ON webhook_deliveries (endpoint, id);
CREATE INDEX webhook_deliveries_created ON webhook_deliveries USING brin (created_at);
