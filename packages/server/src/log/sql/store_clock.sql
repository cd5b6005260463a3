-- The time that activity is stored with. The machine's clock may be set back between two beats; then this one stands
-- still until the next beat.
CREATE OR REPLACE FUNCTION activity_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS
  $$ SELECT greatest(clock_timestamp() + c.ahead, c.seen) FROM store_clock c WHERE c.one $$;

-- The machine's time, for what is written, and the activity time that belongs to it. Both are the same, to the
-- millisecond, as long as the machine's clock is not set back: the list of conversations compares one with the other.
CREATE OR REPLACE FUNCTION activity_clock(OUT at timestamptz, OUT active timestamptz) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  c store_clock;
BEGIN
  SELECT * INTO c FROM store_clock WHERE one;
  at := clock_timestamp()::timestamptz(3);
  active := greatest(at + c.ahead, c.seen)::timestamptz(3);
END $$;

-- Identifies the database as a place: a promoted standby, a point-in-time recovery, or a dump that was loaded into
-- another database are other places. For a server that does not tell, the answer is always the same.
CREATE OR REPLACE FUNCTION store_place() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT concat_ws('.', s.system_identifier, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), d.oid)
    FROM pg_control_system() s, pg_database d WHERE d.datname = current_database());
EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_function THEN
  RETURN 'somewhere';
END $$;

-- Gives the store a new epoch. Several processes may notice the same restore within seconds, and must begin only one
-- epoch: a process that knew the epoch that ends begins the new one at once, all others only if none began in the
-- last 10 s.
CREATE OR REPLACE FUNCTION begin_epoch(p_place text, p_known text) RETURNS void LANGUAGE sql AS $$
  UPDATE store_clock SET epoch = gen_random_uuid(), epoch_at = clock_timestamp(), place = p_place
  WHERE one AND (place <> p_place OR epoch = p_known OR abs(extract(epoch FROM clock_timestamp() - epoch_at)) > 10)
$$;

-- Called once a second by every process, with the mark and the epoch of the store that it knows. Says whether the
-- store still knows the mark, and returns its newest mark and its epoch.
CREATE OR REPLACE FUNCTION store_beat(p_mark text, p_epoch text DEFAULT NULL, OUT o_known boolean, OUT o_mark text, OUT o_epoch text)
LANGUAGE plpgsql AS $$
DECLARE
  c store_clock;
  t timestamptz;
  here text := store_place();
BEGIN
  -- A crash may lose the beats of its last moment; sync looks back further than that.
  SET LOCAL synchronous_commit = off;
  SELECT * INTO c FROM store_clock WHERE one FOR UPDATE SKIP LOCKED;
  IF FOUND THEN
    t := clock_timestamp() + c.ahead;
    IF t < c.seen - interval '1 second' THEN
      UPDATE store_clock SET ahead = c.ahead + (c.seen - t), stepped_at = c.seen WHERE one;
    ELSIF t > c.seen + interval '0.5 seconds' THEN
      UPDATE store_clock SET seen = t WHERE one;
      INSERT INTO store_marks (mark, at) SELECT substr(replace(gen_random_uuid()::text, '-', ''), 1, 16), t
        WHERE NOT EXISTS (SELECT 1 FROM store_marks m WHERE m.at > t - interval '10 seconds');
    END IF;
  END IF;
  o_known := p_mark IS NULL OR EXISTS (SELECT 1 FROM store_marks m WHERE m.mark = p_mark);
  IF NOT o_known OR (SELECT s.place <> here FROM store_clock s WHERE s.one) THEN
    PERFORM begin_epoch(here, p_epoch);
  END IF;
  SELECT m.mark INTO o_mark FROM store_marks m ORDER BY m.at DESC LIMIT 1;
  SELECT s.epoch INTO o_epoch FROM store_clock s WHERE s.one;
END $$;

-- For a cursor: the present time, and a time before which no transaction that is still running can write anything. It
-- must be called before the rows that the cursor stands for are read. For ten minutes after the machine's clock was
-- set back it is unknown how old such a transaction is.
CREATE OR REPLACE FUNCTION sync_clock(OUT now_ms bigint, OUT settled_ms bigint, OUT next_xid bigint, OUT mark text) LANGUAGE plpgsql AS $$
DECLARE
  c store_clock;
  oldest timestamptz;
  t timestamptz;
BEGIN
  SELECT * INTO c FROM store_clock WHERE one;
  t := greatest(clock_timestamp() + c.ahead, c.seen);
  SELECT min(a.xact_start) + c.ahead INTO oldest FROM pg_stat_activity a
    WHERE a.backend_xid IS NOT NULL AND a.datname = current_database();
  oldest := least(t, oldest);
  IF t < c.stepped_at + interval '10 minutes' THEN
    oldest := least(oldest, c.stepped_at - interval '10 minutes');
  END IF;
  now_ms := (extract(epoch FROM t) * 1000)::bigint;
  settled_ms := floor(extract(epoch FROM oldest) * 1000)::bigint;
  next_xid := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
  SELECT m.mark INTO mark FROM store_marks m ORDER BY m.at DESC LIMIT 1;
END $$;
