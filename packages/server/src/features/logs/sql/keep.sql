-- Creates the partitions of the days around p_now, and drops those that have expired by the store's own clock, so
-- that a process with a wrong clock removes nothing. Every process calls it from time to time; the lock lets one do
-- the work, and the others find it done.
CREATE OR REPLACE FUNCTION keep_request_log(p_now timestamptz, p_days int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  today date := (p_now AT TIME ZONE 'UTC')::date;
  day date;
  part text;
  dropped int := 0;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('request_log'));
  FOR day IN SELECT today + i FROM generate_series(-1, 2) i LOOP
    part := 'request_log_' || to_char(day, 'YYYYMMDD');
    IF to_regclass(part) IS NULL THEN
      EXECUTE format('CREATE TABLE %I PARTITION OF request_log FOR VALUES FROM (%L) TO (%L)',
        part, day::text || ' 00:00:00+00', (day + 1)::text || ' 00:00:00+00');
    END IF;
  END LOOP;
  FOR part IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = 'request_log'::regclass
        AND c.relname < 'request_log_' || to_char((now() AT TIME ZONE 'UTC')::date - p_days, 'YYYYMMDD') LOOP
    EXECUTE format('DROP TABLE %I', part);
    dropped := dropped + 1;
  END LOOP;
  RETURN dropped;
END $$;
