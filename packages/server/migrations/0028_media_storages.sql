-- Media storages that customers brought (docs/storage.md). A row is never changed: another storage is another row, and files stay
-- where they were uploaded to.
CREATE TABLE media_storages (
  no int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  env int NOT NULL REFERENCES environments,
  provider text NOT NULL,
  config bytea NOT NULL, -- sealed under the master key
  shown jsonb NOT NULL,  -- without secrets
  created_at timestamptz(3) NOT NULL
);
CREATE INDEX media_storages_env ON media_storages (env);

-- The one that new files go to; null: the service's own.
ALTER TABLE storage ADD COLUMN media int, ADD COLUMN media_test jsonb;

-- Where a file is: the number of a customer's storage, -1 the service's own directory, -2 the operator's bucket; null: from before this
-- was noted, wherever the service's own files are.
ALTER TABLE attachments ADD COLUMN storage int;
ALTER TABLE object_removals ADD COLUMN storage int;
