-- Makes the days of sent_ids (migrations/0037) from p_now on, and drops those that are past their time, by the earlier of p_now and the
-- store's own clock: a process whose clock is wrong takes nothing away. Answers how many went.
-- Every append has the table open, so this waits for those under way, and those that begin meanwhile wait for this: for a tenth of a second
-- at most, or it is left to the next time. There is always one day more than needed, and behind it sent_ids_other.
CREATE OR REPLACE FUNCTION keep_sent_ids(p_now timestamptz, p_days int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  today date := (p_now AT TIME ZONE 'UTC')::date;
  oldest date := (least(p_now, now()) AT TIME ZONE 'UTC')::date - p_days;
  day date;
  part text;
  dropped int := 0;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('sent_ids'));
  PERFORM set_config('lock_timeout', '100', true);
  FOR day IN SELECT today + i FROM generate_series(0, 1) i LOOP
    part := 'sent_ids_' || to_char(day, 'YYYYMMDD');
    CONTINUE WHEN to_regclass(part) IS NOT NULL;
    BEGIN
      EXECUTE format('CREATE TABLE %I PARTITION OF sent_ids FOR VALUES FROM (%L) TO (%L)',
        part, day::text || ' 00:00:00+00', (day + 1)::text || ' 00:00:00+00');
    EXCEPTION WHEN lock_not_available OR check_violation THEN
      -- The second: sent_ids_other holds rows of that day already, because nobody made it in time. It takes the others too.
      CONTINUE;
    END;
  END LOOP;
  FOR part IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = 'sent_ids'::regclass AND c.relname < 'sent_ids_' || to_char(oldest, 'YYYYMMDD') LOOP
    BEGIN
      EXECUTE format('DROP TABLE %I', part);
      dropped := dropped + 1;
    EXCEPTION WHEN lock_not_available THEN
      CONTINUE;
    END;
  END LOOP;
  RETURN dropped;
END $$;
