-- People who sign in to the dashboard. An account belongs to organizations with a role; organizations have environments.
ALTER TABLE accounts
  ADD COLUMN id text COLLATE "C",
  ADD COLUMN name text NOT NULL DEFAULT '',
  ADD COLUMN totp_secret bytea,             -- sealed under the master key
  ADD COLUMN totp_since timestamptz(3),     -- null while it is being set up: it is not asked for yet
  ADD COLUMN totp_step bigint;              -- the last step that was used: it and those before count no more
UPDATE accounts SET id = 'acc_0' || substr(replace(gen_random_uuid()::text, '-', ''), 1, 25);
ALTER TABLE accounts ALTER COLUMN id SET NOT NULL, ADD UNIQUE (id);

ALTER TABLE organization_accounts
  DROP CONSTRAINT organization_accounts_role_check,
  ADD COLUMN joined_at timestamptz(3) NOT NULL DEFAULT now();
UPDATE organization_accounts SET role = 'developer' WHERE role = 'member';
ALTER TABLE organization_accounts ADD CHECK (role IN ('owner', 'admin', 'developer', 'viewer'));
CREATE INDEX organization_accounts_account ON organization_accounts (account);
CREATE INDEX environments_org ON environments (org);

-- The cookie holds a token; its SHA-256 is kept.
CREATE TABLE account_sessions (
  id text COLLATE "C" PRIMARY KEY,
  account int NOT NULL REFERENCES accounts ON DELETE CASCADE,
  token bytea NOT NULL UNIQUE,
  created_at timestamptz(3) NOT NULL,
  signed_in_at timestamptz(3) NOT NULL, -- renewed by giving the password again
  used_at timestamptz(3) NOT NULL,      -- written at most once a minute
  address text NOT NULL,
  user_agent text NOT NULL
);
CREATE INDEX account_sessions_account ON account_sessions (account, used_at);
CREATE INDEX account_sessions_used ON account_sessions (used_at);

-- Each works once, in place of the second factor; hashed.
CREATE TABLE recovery_codes (
  account int NOT NULL REFERENCES accounts ON DELETE CASCADE,
  code bytea NOT NULL,
  PRIMARY KEY (account, code)
);

CREATE TABLE passkeys (
  id text COLLATE "C" PRIMARY KEY,
  account int NOT NULL REFERENCES accounts ON DELETE CASCADE,
  credential bytea NOT NULL UNIQUE,
  public_key bytea NOT NULL,
  sign_count bigint NOT NULL,
  transports text[] NOT NULL,
  name text NOT NULL,
  created_at timestamptz(3) NOT NULL,
  used_at timestamptz(3)
);
CREATE INDEX passkeys_account ON passkeys (account);

-- Challenges that were answered: a challenge proves itself, so that only used ones are kept, until they expire.
CREATE TABLE passkey_challenges (
  challenge bytea PRIMARY KEY,
  expires_at timestamptz(3) NOT NULL
);

-- One per account: asking again replaces it. Hashed.
CREATE TABLE password_resets (
  account int PRIMARY KEY REFERENCES accounts ON DELETE CASCADE,
  token bytea NOT NULL UNIQUE,
  expires_at timestamptz(3) NOT NULL
);

-- Without an organization it is a stranger's sign-up, who gets a new one. Hashed.
CREATE TABLE invitations (
  id text COLLATE "C" PRIMARY KEY,
  org int REFERENCES organizations ON DELETE CASCADE,
  email text COLLATE "C" NOT NULL,
  role text NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'viewer')),
  token bytea NOT NULL UNIQUE,
  invited_by int REFERENCES accounts ON DELETE SET NULL,
  created_at timestamptz(3) NOT NULL,
  expires_at timestamptz(3) NOT NULL
);
CREATE UNIQUE INDEX invitations_once ON invitations (coalesce(org, 0), email);
CREATE INDEX invitations_expiry ON invitations (expires_at);

-- Written in batches, at most once a minute per key.
ALTER TABLE secret_keys ADD COLUMN last_used_at timestamptz(3);

-- Who looked into which conversation: one row, and one entry in the audit log, per conversation and hour.
CREATE TABLE content_reads (
  env int NOT NULL,
  conv bigint NOT NULL,
  account int NOT NULL REFERENCES accounts ON DELETE CASCADE,
  hour timestamptz NOT NULL,
  PRIMARY KEY (conv, account, hour, env)
);
CREATE INDEX content_reads_hour ON content_reads (hour);
