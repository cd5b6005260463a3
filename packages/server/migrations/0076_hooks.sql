-- runs beside earlier versions
-- Synchronous hooks: which server of the customer is asked, about what. `hooks` of the environment grows with every change of one:
-- whoever knows the hooks of an environment knows that they must be read anew. 0: there never was one.
CREATE TABLE hooks (
  no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  env int NOT NULL,
  kind text NOT NULL,
  url text NOT NULL,
  timeout_ms int NOT NULL,
  on_failure text NOT NULL, -- allow or reject
  edits boolean NOT NULL,
  servers boolean NOT NULL,
  types text, -- direct or group; null: both
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3) NOT NULL,
  failing_since timestamptz(3), -- null: it works, or nothing is known
  UNIQUE (env, kind)
);
ALTER TABLE environments ADD COLUMN hooks int NOT NULL DEFAULT 0;
-- They sign requests as those of webhook endpoints do.
CREATE TABLE hook_secrets (
  no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  hook bigint NOT NULL REFERENCES hooks (no) ON DELETE CASCADE,
  secret bytea NOT NULL, -- sealed
  expires_at timestamptz(3) -- null: it is the present one
);
CREATE INDEX hook_secrets_hook ON hook_secrets (hook);
