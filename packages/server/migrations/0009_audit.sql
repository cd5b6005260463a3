-- Who changed what on the control plane: each row is written in the transaction of its change, and no row is ever changed.
-- `org` and `env` say where. A user is noted by number (`usr`), so that an erasure renames it here too.
CREATE TABLE audit (
  no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  org int NOT NULL REFERENCES organizations,
  env int REFERENCES environments, -- null: it concerns the organization
  actor text NOT NULL,
  action text NOT NULL,
  target text,
  usr bigint,
  ip text,
  request_id text NOT NULL,
  changes jsonb NOT NULL -- before and after, never a secret
);
CREATE INDEX audit_by_org ON audit (org, no);
CREATE INDEX audit_by_env ON audit (env, no);
CREATE INDEX audit_by_age ON audit (created_at);
