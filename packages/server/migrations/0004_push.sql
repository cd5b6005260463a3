-- Push. A token is long and of any characters, so it is found by its hash. `no` stands for the token: it stays when the
-- token moves to another user.
CREATE TABLE push_devices (
  env int NOT NULL,
  no bigint GENERATED ALWAYS AS IDENTITY,
  usr bigint NOT NULL,
  provider text NOT NULL CHECK (provider IN ('fcm', 'apns', 'expo', 'webpush')),
  token text NOT NULL,
  token_hash bytea NOT NULL, -- SHA-256
  created_at timestamptz(3) NOT NULL,    -- when this user first registered it
  registered_at timestamptz(3) NOT NULL, -- and last
  PRIMARY KEY (env, no),
  UNIQUE (env, token_hash)
);
CREATE INDEX push_devices_user ON push_devices (env, usr, registered_at);
CREATE INDEX push_devices_provider ON push_devices (env, provider);

CREATE TABLE push_credentials (
  no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- another one for every change
  env int NOT NULL REFERENCES environments,
  provider text NOT NULL CHECK (provider IN ('fcm', 'apns', 'expo', 'webpush')),
  sealed bytea NOT NULL, -- under the master key
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  UNIQUE (env, provider)
);

-- What an environment used, by day (UTC).
CREATE TABLE usage_counters (
  env int NOT NULL,
  day date NOT NULL,
  name text NOT NULL,
  n bigint NOT NULL,
  PRIMARY KEY (env, day, name)
) WITH (fillfactor = 70);

-- Whether a message of the environment can be pushed by a provider: bit 2 of `listeners`.
CREATE FUNCTION can_push(p_env int, p_settings jsonb) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT coalesce(p_settings ->> 'pushMode', 'providers') = 'providers' AND EXISTS (
    SELECT 1 FROM push_credentials c WHERE c.env = p_env
      AND EXISTS (SELECT 1 FROM push_devices d WHERE d.env = c.env AND d.provider = c.provider))
$$;

-- Sets that bit after one of its causes changed. The row is locked first; the next statement then sees all that was
-- committed before.
CREATE FUNCTION set_push_listener(p_env int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM environments WHERE no = p_env FOR NO KEY UPDATE;
  UPDATE environments SET listeners = listeners # 2
    WHERE no = p_env AND (listeners & 2 <> 0) <> can_push(no, settings);
END $$;
