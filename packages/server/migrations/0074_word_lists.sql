-- What the owner of a group decides about it, as JSON: null means all as by default. Slow mode has bit 1024 of the flags, so that
-- an append reads the rules, and writes when a member sent last, only where it is on.
ALTER TABLE conversations ADD COLUMN rules text;
ALTER TABLE members ADD COLUMN last_sent_at timestamptz(3);
-- Words that clients may not send. `words` of the environment grows with every change of a list: whoever has built what finds
-- them knows that it must be built anew. 0: there never was a list.
CREATE TABLE word_lists (
  env int NOT NULL,
  name text COLLATE "C" NOT NULL,
  action text NOT NULL, -- reject or mask
  conversations text NOT NULL, -- all or group
  entries text NOT NULL, -- a JSON array
  updated_at timestamptz(3) NOT NULL,
  PRIMARY KEY (env, name)
);
ALTER TABLE environments ADD COLUMN words int NOT NULL DEFAULT 0;
