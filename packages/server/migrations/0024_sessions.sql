-- no transaction
-- Sockets that users had in the last days: who was connected when a message came. Written in batches, from the login on.
CREATE TABLE IF NOT EXISTS socket_sessions (
  env int NOT NULL,
  id text COLLATE "C" NOT NULL,  -- ses_, which begins with the time of the login
  usr bigint NOT NULL,
  node text COLLATE "C" NOT NULL,
  address text,
  sdk text,
  opened_at timestamptz(3) NOT NULL,
  closed_at timestamptz(3),
  close_code int,                -- null with closed_at: its node went without a word
  PRIMARY KEY (env, id)
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS socket_sessions_user ON socket_sessions (env, usr, id);
CREATE INDEX IF NOT EXISTS socket_sessions_open ON socket_sessions (env, id) WHERE closed_at IS NULL;
CREATE INDEX IF NOT EXISTS socket_sessions_node ON socket_sessions (node) WHERE closed_at IS NULL;
CREATE INDEX IF NOT EXISTS socket_sessions_closed ON socket_sessions USING brin (closed_at);

-- The processes of the service, each renewing its row while it runs.
CREATE TABLE IF NOT EXISTS nodes (
  id text COLLATE "C" PRIMARY KEY,
  host text NOT NULL,
  version text NOT NULL,
  roles text[] NOT NULL,
  started_at timestamptz(3) NOT NULL,
  seen_at timestamptz(3) NOT NULL
);

-- Attempts to push a message to a device.
CREATE TABLE IF NOT EXISTS push_attempts (
  env int NOT NULL,
  conv bigint NOT NULL,
  seq bigint NOT NULL,
  usr bigint NOT NULL,
  device bigint NOT NULL,
  provider text NOT NULL,
  result text NOT NULL,          -- sent, dead, rejected, retry, failed
  reason text,
  at timestamptz(3) NOT NULL
);
CREATE INDEX IF NOT EXISTS push_attempts_message ON push_attempts (conv, seq, usr);
CREATE INDEX IF NOT EXISTS push_attempts_at ON push_attempts USING brin (at);

-- Users by the beginning of their name.
CREATE INDEX CONCURRENTLY IF NOT EXISTS users_by_name ON users (env, lower(name) text_pattern_ops, id)
  WHERE name IS NOT NULL AND erased_at IS NULL;
