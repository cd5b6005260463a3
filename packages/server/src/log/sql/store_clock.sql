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

-- Called once a second by every process. Says whether the store still knows the mark, and returns its newest one.
CREATE OR REPLACE FUNCTION store_beat(p_mark text, OUT o_known boolean, OUT o_mark text) LANGUAGE plpgsql AS $$
DECLARE
  c store_clock;
  t timestamptz;
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
  SELECT m.mark INTO o_mark FROM store_marks m ORDER BY m.at DESC LIMIT 1;
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
