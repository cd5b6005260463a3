-- Which life of the store this is (src/log/sql/store_clock.sql): another one when it was restored to an earlier state, or when another server
-- took it over. Clients are told it in `hello`, and load everything again when it is not the one they knew.
ALTER TABLE store_clock
  ADD COLUMN epoch text NOT NULL DEFAULT gen_random_uuid()::text,
  ADD COLUMN epoch_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The server, its timeline and the database, as of the last beat.
  ADD COLUMN place text NOT NULL DEFAULT '';

-- Its result has changed.
DROP FUNCTION IF EXISTS store_beat(text);

-- Activity is stamped by a clock that never goes back, messages and events by the machine's. Kept where the two differ, which is after the
-- machine's was set back: the list of conversations asks where a conversation stood as of a moment (activity_as_of).
ALTER TABLE messages ADD COLUMN active_at timestamptz;
ALTER TABLE events ADD COLUMN active_at timestamptz;
