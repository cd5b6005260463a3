-- Counting what was there before analytics goes in portions from the first row on: a statement over all users of a large store would not
-- end before its time-out. Stages: 0 users, 1 conversations, 2 edits and deletions, 3 pushes, 4 messages; (conv, seq) is the place within one,
-- where a single number is enough in conv.
ALTER TABLE analytics_fill ADD COLUMN stage smallint NOT NULL DEFAULT 0;
UPDATE analytics_fill SET stage = 4 WHERE others;
ALTER TABLE analytics_fill DROP COLUMN others;
