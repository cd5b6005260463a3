-- Where the jobs of a lane begin, so that nobody looks through the traces of those that are gone (src/platform/jobs/sql/jobs.sql).
ALTER TABLE job_lanes
  ADD COLUMN first_at timestamptz NOT NULL DEFAULT '-infinity',       -- no job of the lane has an earlier run_at
  ADD COLUMN first_leased_at timestamptz NOT NULL DEFAULT '-infinity'; -- no leased job of the lane has an earlier run_at
DROP FUNCTION lane_next(text, bigint, int, timestamptz);
