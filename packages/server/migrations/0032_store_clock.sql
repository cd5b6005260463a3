-- By which clock sync asks what changed since when (src/log/sql/store_clock.sql). The machine's may be set back; this one never goes back.
CREATE TABLE store_clock (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  -- What it showed at the last beat.
  seen timestamptz NOT NULL,
  -- By how much it is ahead of the machine's: the sum of what that was set back.
  ahead interval NOT NULL DEFAULT '0',
  -- What it showed when the machine's was last found set back.
  stepped_at timestamptz
);
INSERT INTO store_clock (seen) VALUES (clock_timestamp());

-- One every ten seconds, and each cursor of sync names one. A store that does not know it was restored to a state before it.
CREATE TABLE store_marks (
  mark text PRIMARY KEY,
  at timestamptz NOT NULL
);
CREATE INDEX store_marks_at ON store_marks (at);
INSERT INTO store_marks (mark, at) VALUES (substr(replace(gen_random_uuid()::text, '-', ''), 1, 16), clock_timestamp());
