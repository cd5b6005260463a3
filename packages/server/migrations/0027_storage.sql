-- Bring your own storage (docs/storage.md). An environment without a row keeps its history here.
CREATE TABLE storage (
  env int PRIMARY KEY REFERENCES environments,
  mode text NOT NULL DEFAULT 'managed', -- managed, byo_db, or returning: byo_db while the history comes back
  active text,                          -- the slot that is written to and read from
  previous text,                        -- the slot whose history is still being copied into the active one
  has_cold boolean NOT NULL DEFAULT false, -- messages have left this store
  copy jsonb,                           -- what is being copied in the background, and how far it is
  -- Of the sink, the one worker that writes to the customer's database.
  owner text,
  owned_until timestamptz(3) NOT NULL DEFAULT '-infinity',
  due_at timestamptz(3) NOT NULL DEFAULT '-infinity', -- not before: it steps back after failures
  failures int NOT NULL DEFAULT 0,
  status text NOT NULL DEFAULT 'healthy',
  since timestamptz(3),                 -- of the first failure after the last success
  last_success_at timestamptz(3),
  error text,
  error_class text,
  pruned_at timestamptz(3) NOT NULL DEFAULT '-infinity'
);

CREATE TABLE storage_slots (
  env int NOT NULL REFERENCES environments,
  slot text NOT NULL CHECK (slot IN ('a', 'b')),
  type text NOT NULL,
  url bytea NOT NULL,     -- these three are sealed under the master key
  replica_url bytea,
  secrets bytea,          -- of an http endpoint: JSON [{ secret, until }]
  shown_url text NOT NULL, -- without secrets
  shown_replica_url text,
  schema text,
  schema_version int,
  database_id text,
  last_test jsonb,
  created_at timestamptz(3) NOT NULL,
  changed_at timestamptz(3) NOT NULL,
  PRIMARY KEY (env, slot)
);

-- What changed and is not in the customer's database yet, in the order of changing. A row goes when the database has confirmed it: the
-- rows that are there are those that are missing there. `message` is the seq of the message; null: the conversation or its members.
CREATE TABLE sink_log (
  no bigint GENERATED ALWAYS AS IDENTITY,
  env int NOT NULL,
  conv bigint NOT NULL,
  seq bigint NOT NULL,
  message bigint,
  at timestamptz(3) NOT NULL,
  PRIMARY KEY (env, no)
);

-- Records that the database refuses, each alone: set aside with an alarm, and kept in our own store until they are accepted.
CREATE TABLE sink_refused (
  env int NOT NULL,
  conv bigint NOT NULL,
  message bigint NOT NULL, -- 0: the conversation or its members
  error text NOT NULL,
  at timestamptz(3) NOT NULL,
  PRIMARY KEY (env, conv, message)
);

-- Conversations with messages that the database has confirmed. Those up to cold_seq have left this store; oldest_at says from when on
-- there may be more to leave; want_seq is a cold message that is needed here again, as the latest of its conversation.
CREATE TABLE sink_conversations (
  env int NOT NULL,
  conv bigint NOT NULL,
  cold_seq bigint NOT NULL DEFAULT 0,
  oldest_at timestamptz(3),
  want_seq bigint,
  PRIMARY KEY (env, conv)
);
CREATE INDEX sink_conversations_oldest ON sink_conversations (env, oldest_at);
CREATE INDEX sink_conversations_wanted ON sink_conversations (env) WHERE want_seq IS NOT NULL;

-- Erasures that must still reach customers' databases.
CREATE TABLE sink_erasures (
  no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  env int NOT NULL,
  subject bytea NOT NULL, -- the user's id, sealed
  replacement text NOT NULL,
  messages text NOT NULL,
  created_at timestamptz(3) NOT NULL
);
CREATE INDEX sink_erasures_env ON sink_erasures (env, no);

-- How long the buffer holds messages and events, in hours; null: as the service is set.
ALTER TABLE environments ADD COLUMN buffer_hours int;
