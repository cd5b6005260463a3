-- Bytes of files that an environment has announced or stored and that are not removed for good yet: what its plan bounds.
-- An object keeps counting while it waits for its removal, because until then it lies in the storage.
CREATE TABLE media_usage (
  env int PRIMARY KEY,
  bytes bigint NOT NULL
) WITH (fillfactor = 50);

ALTER TABLE object_removals ADD COLUMN size bigint NOT NULL DEFAULT 0;

INSERT INTO media_usage (env, bytes) SELECT env, sum(size) FROM attachments GROUP BY env;
