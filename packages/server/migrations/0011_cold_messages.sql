-- A message may leave this store for colder storage. What stays of its row is what counting needs: env, conv, seq, sender and
-- deleted_at. A row without an id is such a one; features/messages/reader.ts is the only place that has to know.
ALTER TABLE messages ALTER COLUMN id DROP NOT NULL, ALTER COLUMN created_at DROP NOT NULL;
