-- Uploads. A row is an announced upload (`ready_at` null), then a ready attachment, then part of a message. What is
-- dropped leaves the row's place in the storage to `object_removals`, in the same transaction.
CREATE TABLE attachments (
  env int NOT NULL,
  id text COLLATE "C" NOT NULL,
  conv bigint NOT NULL,
  uploader bigint, -- null: the server
  name text NOT NULL,
  size bigint NOT NULL,
  content_type text NOT NULL, -- as announced; mime_type is what the bytes say
  object_key text NOT NULL,
  resource text NOT NULL CHECK (resource IN ('image', 'video', 'raw')),
  created_at timestamptz(3) NOT NULL,
  ready_at timestamptz(3),
  mime_type text,
  width int,
  height int,
  message bigint, -- seq of the message it belongs to
  keep_until timestamptz(3) NOT NULL, -- of one that no message uses
  PRIMARY KEY (env, id)
);
CREATE INDEX attachments_message ON attachments (env, conv, message) WHERE message IS NOT NULL;
CREATE INDEX attachments_unused ON attachments (keep_until) WHERE message IS NULL;
CREATE INDEX attachments_unused_uploader ON attachments (env, uploader) WHERE message IS NULL;

-- A ticket may still be used after its attachment is gone: such an object is removed again at `again_at`.
CREATE TABLE object_removals (
  no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  env int NOT NULL,
  object_key text NOT NULL,
  resource text NOT NULL,
  again_at timestamptz(3) NOT NULL,
  attempts int NOT NULL DEFAULT 0,
  due_at timestamptz(3) NOT NULL
);
CREATE INDEX object_removals_due ON object_removals (due_at);
