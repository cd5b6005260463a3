-- Owners are told once a month that a ceiling of their plan is near, and once that it is reached.
CREATE TABLE plan_notices (
  env int NOT NULL,
  at timestamptz(0) NOT NULL, -- the month
  what text NOT NULL CHECK (what IN ('users', 'connections')),
  percent int NOT NULL,
  PRIMARY KEY (env, at, what, percent)
);

-- Counting what was there before analytics: one row while there is anything to count. `cut`: what happened before it is counted from the
-- rows that are there, what happened since from notes. A worker sets it when all writers write notes; `cut_xid` is a transaction of
-- that moment: when all before it are over, nothing from before the cut is still to come.
CREATE TABLE analytics_fill (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  cut timestamptz(3),
  cut_xid xid8,
  conv bigint NOT NULL DEFAULT 0, -- messages up to here are counted
  seq bigint NOT NULL DEFAULT 0,
  others boolean NOT NULL DEFAULT false, -- users, conversations, changes and pushes are counted
  done bigint NOT NULL DEFAULT 0,
  total bigint NOT NULL,
  finished_at timestamptz(3)
);
INSERT INTO analytics_fill (total) SELECT count(*) FROM messages HAVING count(*) > 0 OR EXISTS (SELECT 1 FROM users);

-- Whatever was counted since migration 0025 is counted again from the same rows.
TRUNCATE activity_notes, counters, message_hours, active_users, active_months, conversation_activity, sender_activity, activity_tops;
