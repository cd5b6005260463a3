-- How far the clock of whoever signs with this key was seen to run ahead of ours, in seconds: tokens from just before a revocation are
-- dated that much later than it. Forgotten after a day, because only the last minute counts.
ALTER TABLE secret_keys ADD COLUMN ahead int NOT NULL DEFAULT 0, ADD COLUMN ahead_at timestamptz(3);
