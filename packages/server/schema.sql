-- The tables of a new store, written by npm run schema from the migrations; do not edit.
-- made from: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 20 23 24 25 26 27 28 30 31 32 34 36 37 38 40 41 45 46 47 50 51 52 55 56 58 59 62 63 64 65 66 67 68 69 70 72 73 74 75 76 77 78 79 80

CREATE SEQUENCE request_log_no CACHE 1000;

CREATE TABLE organizations (
  no integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  id text COLLATE "C" NOT NULL,
  name text NOT NULL,
  created_at timestamp(3) with time zone NOT NULL DEFAULT now(),
  deleted_at timestamp(3) with time zone,
  CONSTRAINT organizations_pkey PRIMARY KEY (no),
  CONSTRAINT organizations_id_key UNIQUE (id)
);

CREATE TABLE accounts (
  no integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  email text COLLATE "C" NOT NULL,
  password_hash text NOT NULL,
  created_at timestamp(3) with time zone NOT NULL DEFAULT now(),
  id text COLLATE "C" NOT NULL,
  name text NOT NULL DEFAULT ''::text,
  totp_secret bytea,
  totp_since timestamp(3) with time zone,
  totp_step bigint,
  CONSTRAINT accounts_pkey PRIMARY KEY (no),
  CONSTRAINT accounts_email_key UNIQUE (email),
  CONSTRAINT accounts_id_key UNIQUE (id)
);

CREATE TABLE organization_accounts (
  org integer NOT NULL,
  account integer NOT NULL,
  role text NOT NULL,
  joined_at timestamp(3) with time zone NOT NULL DEFAULT now(),
  CONSTRAINT organization_accounts_pkey PRIMARY KEY (org, account),
  CONSTRAINT organization_accounts_org_fkey FOREIGN KEY (org) REFERENCES organizations(no),
  CONSTRAINT organization_accounts_account_fkey FOREIGN KEY (account) REFERENCES accounts(no),
  CONSTRAINT organization_accounts_role_check CHECK (role = ANY (ARRAY['owner'::text, 'admin'::text, 'developer'::text, 'viewer'::text]))
);
CREATE INDEX organization_accounts_account ON organization_accounts USING btree (account);

CREATE TABLE environments (
  no integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  id text COLLATE "C" NOT NULL,
  org integer NOT NULL,
  name text NOT NULL,
  kind text NOT NULL,
  status text NOT NULL DEFAULT 'active'::text,
  plan text NOT NULL DEFAULT 'free'::text,
  settings jsonb NOT NULL DEFAULT '{}'::jsonb,
  created_at timestamp(3) with time zone NOT NULL DEFAULT now(),
  listeners integer NOT NULL DEFAULT 0,
  buffer_hours integer,
  local boolean NOT NULL DEFAULT false,
  ended_at timestamp(3) with time zone,
  removing_until timestamp(3) with time zone,
  removed_at timestamp(3) with time zone,
  words integer NOT NULL DEFAULT 0,
  hooks integer NOT NULL DEFAULT 0,
  CONSTRAINT environments_kind_check CHECK (kind = ANY (ARRAY['production'::text, 'development'::text])),
  CONSTRAINT environments_status_check CHECK (status = ANY (ARRAY['active'::text, 'suspended'::text])),
  CONSTRAINT environments_pkey PRIMARY KEY (no),
  CONSTRAINT environments_id_key UNIQUE (id),
  CONSTRAINT environments_org_fkey FOREIGN KEY (org) REFERENCES organizations(no)
);
CREATE INDEX environments_org ON environments USING btree (org);

CREATE TABLE secret_keys (
  id text COLLATE "C" NOT NULL,
  env integer NOT NULL,
  name text NOT NULL DEFAULT ''::text,
  secret bytea NOT NULL,
  created_at timestamp(3) with time zone NOT NULL DEFAULT now(),
  revoked_at timestamp(3) with time zone,
  ahead integer NOT NULL DEFAULT 0,
  ahead_at timestamp(3) with time zone,
  last_used_at timestamp(3) with time zone,
  CONSTRAINT secret_keys_pkey PRIMARY KEY (id),
  CONSTRAINT secret_keys_env_fkey FOREIGN KEY (env) REFERENCES environments(no)
);
CREATE INDEX secret_keys_env ON secret_keys USING btree (env);

CREATE TABLE master_key_check (
  one boolean NOT NULL DEFAULT true,
  sealed bytea NOT NULL,
  CONSTRAINT master_key_check_one_check CHECK (one),
  CONSTRAINT master_key_check_pkey PRIMARY KEY (one)
);

CREATE TABLE users (
  env integer NOT NULL,
  no bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  id text COLLATE "C" NOT NULL,
  name text,
  image_url text,
  metadata text,
  created_at timestamp(3) with time zone NOT NULL DEFAULT now(),
  deactivated_at timestamp(3) with time zone,
  tokens_from timestamp(3) with time zone,
  erased_at timestamp(3) with time zone,
  erasing text,
  last_seen_at timestamp(3) with time zone,
  personal_rev bigint NOT NULL DEFAULT 0,
  silenced_until timestamp(3) with time zone,
  deactivated_until timestamp(3) with time zone,
  CONSTRAINT users_pkey PRIMARY KEY (no, env),
  CONSTRAINT users_env_id_key UNIQUE (env, id)
) WITH (fillfactor=85);
CREATE INDEX users_erasing ON users USING btree (env, no) WHERE erasing IS NOT NULL;
CREATE INDEX users_by_name ON users USING btree (env, lower(name) text_pattern_ops, id) WHERE name IS NOT NULL AND erased_at IS NULL;
CREATE INDEX users_refused ON users USING btree (no) WHERE erased_at IS NOT NULL OR silenced_until IS NOT NULL OR deactivated_at IS NOT NULL;

CREATE TABLE erased_ids (
  env integer NOT NULL,
  subject bytea NOT NULL,
  tokens_from timestamp(3) with time zone NOT NULL,
  CONSTRAINT erased_ids_pkey PRIMARY KEY (env, subject)
);

CREATE TABLE conversations (
  env integer NOT NULL,
  no bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  id text COLLATE "C" NOT NULL,
  type text NOT NULL,
  name text,
  metadata text,
  last_seq bigint NOT NULL DEFAULT 0,
  message_count bigint NOT NULL DEFAULT 0,
  last_message_seq bigint,
  last_activity_at timestamp(3) with time zone NOT NULL,
  last_activity_step integer NOT NULL,
  created_at timestamp(3) with time zone NOT NULL,
  deleted_at timestamp(3) with time zone,
  last_deleted_seq bigint NOT NULL DEFAULT 0,
  creator bigint,
  flags integer NOT NULL DEFAULT 0,
  rules text,
  CONSTRAINT conversations_pkey PRIMARY KEY (no, env),
  CONSTRAINT conversations_id_env_key UNIQUE (id, env)
) WITH (fillfactor=70);
CREATE INDEX conversations_by_creator ON conversations USING btree (creator, created_at) INCLUDE (env) WHERE creator IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX conversations_newest ON conversations USING btree ((
CASE
    WHEN deleted_at IS NULL THEN env
    ELSE NULL::integer
END), last_activity_step DESC, no DESC);

CREATE TABLE members (
  env integer NOT NULL,
  conv bigint NOT NULL,
  usr bigint NOT NULL,
  role text NOT NULL DEFAULT 'member'::text,
  last_read_seq bigint NOT NULL DEFAULT 0,
  last_delivered_seq bigint NOT NULL DEFAULT 0,
  read_count bigint NOT NULL DEFAULT 0,
  own_unread bigint NOT NULL DEFAULT 0,
  muted boolean NOT NULL DEFAULT false,
  last_activity_step integer NOT NULL,
  own_activity_step integer NOT NULL,
  own_activity_at timestamp(3) with time zone NOT NULL,
  level smallint,
  muted_until timestamp(3) with time zone,
  silenced_until timestamp(3) with time zone,
  last_sent_at timestamp(3) with time zone,
  CONSTRAINT members_pkey PRIMARY KEY (conv, usr, env)
) WITH (fillfactor=70);
CREATE INDEX members_by_activity ON members USING btree (usr, last_activity_step DESC) INCLUDE (conv, env);
CREATE INDEX members_by_own_activity ON members USING btree (usr, own_activity_step DESC) INCLUDE (conv, env);

CREATE TABLE departures (
  env integer NOT NULL,
  usr bigint NOT NULL,
  conv bigint NOT NULL,
  at timestamp(3) with time zone NOT NULL,
  last_sent_at timestamp(3) with time zone,
  CONSTRAINT departures_pkey PRIMARY KEY (usr, conv, env)
);
CREATE INDEX departures_at ON departures USING btree (usr, at);
CREATE INDEX departures_by_conversation ON departures USING btree (conv, at);

CREATE TABLE messages (
  env integer NOT NULL,
  conv bigint NOT NULL,
  seq bigint NOT NULL,
  id text COLLATE "C",
  sender bigint,
  text text,
  reply_to text COLLATE "C",
  metadata text,
  attachments text,
  version integer NOT NULL DEFAULT 1,
  created_at timestamp(3) with time zone,
  edited_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  hard boolean NOT NULL DEFAULT false,
  active_at timestamp with time zone,
  thread bigint,
  extras text,
  CONSTRAINT messages_pkey PRIMARY KEY (conv, seq, env),
  CONSTRAINT messages_id_env_key UNIQUE (id, env)
);

CREATE TABLE events (
  env integer NOT NULL,
  conv bigint NOT NULL,
  seq bigint NOT NULL,
  type text NOT NULL,
  message bigint,
  users bigint[],
  actor bigint,
  data text,
  created_at timestamp(3) with time zone NOT NULL,
  active_at timestamp with time zone,
  CONSTRAINT events_pkey PRIMARY KEY (conv, seq, env)
);
CREATE INDEX events_by_age ON events USING btree ((env + 0), created_at);

CREATE TABLE dedup (
  env integer NOT NULL,
  conv bigint NOT NULL,
  sender bigint NOT NULL,
  client_msg_id text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  created_at timestamp(3) with time zone NOT NULL,
  CONSTRAINT dedup_pkey PRIMARY KEY (conv, sender, client_msg_id, env)
);
CREATE INDEX dedup_created ON dedup USING brin (created_at);

CREATE TABLE idempotency (
  env integer NOT NULL,
  key text COLLATE "C" NOT NULL,
  route bytea NOT NULL,
  fingerprint bytea NOT NULL,
  status integer,
  body bytea,
  subjects text[],
  created_at timestamp(3) with time zone NOT NULL DEFAULT now(),
  CONSTRAINT idempotency_pkey PRIMARY KEY (env, key, route)
);
CREATE INDEX idempotency_subjects ON idempotency USING gin (subjects);
CREATE INDEX idempotency_by_age ON idempotency USING btree (created_at);

CREATE TABLE outbox (
  no bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  id text COLLATE "C" NOT NULL,
  env integer NOT NULL,
  type text NOT NULL,
  key text COLLATE "C",
  conv bigint,
  seq bigint,
  message bigint,
  users bigint[],
  actor bigint,
  data text,
  sealed bytea,
  created_at timestamp(3) with time zone NOT NULL,
  due_at timestamp(3) with time zone NOT NULL,
  consumer integer NOT NULL DEFAULT 1,
  CONSTRAINT outbox_pkey PRIMARY KEY (no)
) WITH (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=1000);
CREATE UNIQUE INDEX outbox_key ON outbox USING btree (env, key) WHERE key IS NOT NULL;
CREATE INDEX outbox_due ON outbox USING btree (consumer, due_at);

CREATE TABLE jobs (
  no bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  queue text COLLATE "C" NOT NULL,
  key bigint NOT NULL,
  run_at timestamp with time zone NOT NULL,
  leased boolean NOT NULL DEFAULT false,
  claims integer NOT NULL DEFAULT 0,
  ref bigint,
  data jsonb,
  CONSTRAINT jobs_pkey PRIMARY KEY (no)
) WITH (fillfactor=70, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=1000);
CREATE INDEX jobs_lane ON jobs USING btree (queue, key, run_at);
CREATE INDEX jobs_leased ON jobs USING btree (queue, key, run_at) WHERE leased;

CREATE TABLE job_lanes (
  queue text COLLATE "C" NOT NULL,
  key bigint NOT NULL,
  width integer NOT NULL,
  next_at timestamp with time zone NOT NULL,
  served_at timestamp with time zone NOT NULL DEFAULT now(),
  first_at timestamp with time zone NOT NULL DEFAULT '-infinity'::timestamp with time zone,
  first_leased_at timestamp with time zone NOT NULL DEFAULT '-infinity'::timestamp with time zone,
  CONSTRAINT job_lanes_pkey PRIMARY KEY (queue, key)
) WITH (fillfactor=70, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=1000);
CREATE INDEX job_lanes_next ON job_lanes USING btree (queue, next_at);

CREATE TABLE webhook_endpoints (
  no bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  env integer NOT NULL,
  id text COLLATE "C" NOT NULL,
  url text NOT NULL,
  events text[] NOT NULL,
  description text,
  status text NOT NULL DEFAULT 'enabled'::text,
  disabled_at timestamp(3) with time zone,
  disabled_reason text,
  failing_since timestamp(3) with time zone,
  created_at timestamp(3) with time zone NOT NULL DEFAULT now(),
  CONSTRAINT webhook_endpoints_status_check CHECK (status = ANY (ARRAY['enabled'::text, 'disabled'::text])),
  CONSTRAINT webhook_endpoints_pkey PRIMARY KEY (no),
  CONSTRAINT webhook_endpoints_id_key UNIQUE (id),
  CONSTRAINT webhook_endpoints_env_fkey FOREIGN KEY (env) REFERENCES environments(no)
);
CREATE INDEX webhook_endpoints_env ON webhook_endpoints USING btree (env, id);
CREATE INDEX webhook_endpoints_failing ON webhook_endpoints USING btree (failing_since) WHERE failing_since IS NOT NULL;

CREATE TABLE webhook_secrets (
  no bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  endpoint bigint NOT NULL,
  secret bytea NOT NULL,
  expires_at timestamp(3) with time zone,
  CONSTRAINT webhook_secrets_pkey PRIMARY KEY (no),
  CONSTRAINT webhook_secrets_endpoint_fkey FOREIGN KEY (endpoint) REFERENCES webhook_endpoints(no) ON DELETE CASCADE
);
CREATE INDEX webhook_secrets_endpoint ON webhook_secrets USING btree (endpoint);

CREATE TABLE webhook_deliveries (
  no bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  id text COLLATE "C" NOT NULL,
  env integer NOT NULL,
  endpoint bigint NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  type text NOT NULL,
  conv bigint,
  seq bigint,
  message bigint,
  users bigint[],
  actor bigint,
  data text,
  sealed bytea,
  event_at timestamp(3) with time zone NOT NULL,
  created_at timestamp(3) with time zone NOT NULL,
  status text NOT NULL DEFAULT 'pending'::text,
  attempts jsonb NOT NULL DEFAULT '[]'::jsonb,
  next_at timestamp(3) with time zone,
  CONSTRAINT webhook_deliveries_status_check CHECK (status = ANY (ARRAY['pending'::text, 'succeeded'::text, 'failed'::text])),
  CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (no)
) WITH (fillfactor=80);
CREATE UNIQUE INDEX webhook_deliveries_log ON webhook_deliveries USING btree (endpoint, id);
CREATE INDEX webhook_deliveries_created ON webhook_deliveries USING brin (created_at);

CREATE TABLE attachments (
  env integer NOT NULL,
  id text COLLATE "C" NOT NULL,
  conv bigint NOT NULL,
  uploader bigint,
  name text NOT NULL,
  size bigint NOT NULL,
  content_type text NOT NULL,
  object_key text NOT NULL,
  resource text NOT NULL,
  created_at timestamp(3) with time zone NOT NULL,
  ready_at timestamp(3) with time zone,
  mime_type text,
  width integer,
  height integer,
  message bigint,
  keep_until timestamp(3) with time zone NOT NULL,
  storage integer,
  duration_ms integer,
  waveform text,
  CONSTRAINT attachments_resource_check CHECK (resource = ANY (ARRAY['image'::text, 'video'::text, 'raw'::text])),
  CONSTRAINT attachments_pkey PRIMARY KEY (env, id)
);
CREATE INDEX attachments_message ON attachments USING btree (env, conv, message) WHERE message IS NOT NULL;
CREATE INDEX attachments_unused ON attachments USING btree (keep_until) WHERE message IS NULL;
CREATE INDEX attachments_unused_uploader ON attachments USING btree (env, uploader) WHERE message IS NULL;

CREATE TABLE object_removals (
  no bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  env integer NOT NULL,
  object_key text NOT NULL,
  resource text NOT NULL,
  again_at timestamp(3) with time zone NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  due_at timestamp(3) with time zone NOT NULL,
  size bigint NOT NULL DEFAULT 0,
  storage integer,
  CONSTRAINT object_removals_pkey PRIMARY KEY (no)
);
CREATE INDEX object_removals_due ON object_removals USING btree (due_at);

CREATE TABLE push_devices (
  env integer NOT NULL,
  no bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  usr bigint NOT NULL,
  provider text NOT NULL,
  token text NOT NULL,
  token_hash bytea NOT NULL,
  created_at timestamp(3) with time zone NOT NULL,
  registered_at timestamp(3) with time zone NOT NULL,
  voip_token text,
  CONSTRAINT push_devices_provider_check CHECK (provider = ANY (ARRAY['fcm'::text, 'apns'::text, 'expo'::text, 'webpush'::text])),
  CONSTRAINT push_devices_pkey PRIMARY KEY (env, no),
  CONSTRAINT push_devices_env_token_hash_key UNIQUE (env, token_hash)
);
CREATE INDEX push_devices_user ON push_devices USING btree (env, usr, registered_at);
CREATE INDEX push_devices_provider ON push_devices USING btree (env, provider);

CREATE TABLE push_credentials (
  no bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  env integer NOT NULL,
  provider text NOT NULL,
  sealed bytea NOT NULL,
  created_at timestamp(3) with time zone NOT NULL DEFAULT now(),
  CONSTRAINT push_credentials_provider_check CHECK (provider = ANY (ARRAY['fcm'::text, 'apns'::text, 'expo'::text, 'webpush'::text])),
  CONSTRAINT push_credentials_pkey PRIMARY KEY (no),
  CONSTRAINT push_credentials_env_provider_key UNIQUE (env, provider),
  CONSTRAINT push_credentials_env_fkey FOREIGN KEY (env) REFERENCES environments(no)
);

CREATE TABLE usage_counters (
  env integer NOT NULL,
  day date NOT NULL,
  name text NOT NULL,
  n bigint NOT NULL,
  CONSTRAINT usage_counters_pkey PRIMARY KEY (env, day, name)
) WITH (fillfactor=70);

CREATE TABLE deleted_counts (
  conv bigint NOT NULL,
  level integer NOT NULL,
  slot bigint NOT NULL,
  n integer NOT NULL,
  env integer NOT NULL,
  CONSTRAINT deleted_counts_pkey PRIMARY KEY (conv, level, slot, env)
) WITH (fillfactor=70);

CREATE TABLE audit (
  no bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  id text COLLATE "C" NOT NULL,
  created_at timestamp(3) with time zone NOT NULL DEFAULT now(),
  org integer NOT NULL,
  env integer,
  actor text NOT NULL,
  action text NOT NULL,
  target text,
  usr bigint,
  ip text,
  request_id text NOT NULL,
  changes jsonb NOT NULL,
  CONSTRAINT audit_pkey PRIMARY KEY (no),
  CONSTRAINT audit_id_key UNIQUE (id),
  CONSTRAINT audit_org_fkey FOREIGN KEY (org) REFERENCES organizations(no),
  CONSTRAINT audit_env_fkey FOREIGN KEY (env) REFERENCES environments(no)
);
CREATE INDEX audit_by_org ON audit USING btree (org, no);
CREATE INDEX audit_by_env ON audit USING btree (env, no);
CREATE INDEX audit_by_age ON audit USING btree (created_at);

CREATE TABLE media_usage (
  env integer NOT NULL,
  bytes bigint NOT NULL,
  CONSTRAINT media_usage_pkey PRIMARY KEY (env)
) WITH (fillfactor=50);

CREATE TABLE webhook_payloads (
  event_id text COLLATE "C" NOT NULL,
  env integer NOT NULL,
  conv bigint NOT NULL,
  message bigint,
  data text,
  event_at timestamp(3) with time zone NOT NULL,
  CONSTRAINT webhook_payloads_pkey PRIMARY KEY (event_id)
);
CREATE INDEX webhook_payloads_conv ON webhook_payloads USING btree (conv, message);
CREATE INDEX webhook_payloads_event_at ON webhook_payloads USING brin (event_at);
CREATE INDEX webhook_payloads_mentions ON webhook_payloads USING btree (env) WHERE strpos(data, '"mentions":'::text) > 0;

CREATE TABLE account_sessions (
  id text COLLATE "C" NOT NULL,
  account integer NOT NULL,
  token bytea NOT NULL,
  created_at timestamp(3) with time zone NOT NULL,
  signed_in_at timestamp(3) with time zone NOT NULL,
  used_at timestamp(3) with time zone NOT NULL,
  address text NOT NULL,
  user_agent text NOT NULL,
  CONSTRAINT account_sessions_pkey PRIMARY KEY (id),
  CONSTRAINT account_sessions_token_key UNIQUE (token),
  CONSTRAINT account_sessions_account_fkey FOREIGN KEY (account) REFERENCES accounts(no) ON DELETE CASCADE
);
CREATE INDEX account_sessions_account ON account_sessions USING btree (account, used_at);
CREATE INDEX account_sessions_used ON account_sessions USING btree (used_at);

CREATE TABLE recovery_codes (
  account integer NOT NULL,
  code bytea NOT NULL,
  CONSTRAINT recovery_codes_pkey PRIMARY KEY (account, code),
  CONSTRAINT recovery_codes_account_fkey FOREIGN KEY (account) REFERENCES accounts(no) ON DELETE CASCADE
);

CREATE TABLE passkeys (
  id text COLLATE "C" NOT NULL,
  account integer NOT NULL,
  credential bytea NOT NULL,
  public_key bytea NOT NULL,
  sign_count bigint NOT NULL,
  transports text[] NOT NULL,
  name text NOT NULL,
  created_at timestamp(3) with time zone NOT NULL,
  used_at timestamp(3) with time zone,
  CONSTRAINT passkeys_pkey PRIMARY KEY (id),
  CONSTRAINT passkeys_credential_key UNIQUE (credential),
  CONSTRAINT passkeys_account_fkey FOREIGN KEY (account) REFERENCES accounts(no) ON DELETE CASCADE
);
CREATE INDEX passkeys_account ON passkeys USING btree (account);

CREATE TABLE passkey_challenges (
  challenge bytea NOT NULL,
  expires_at timestamp(3) with time zone NOT NULL,
  CONSTRAINT passkey_challenges_pkey PRIMARY KEY (challenge)
);

CREATE TABLE password_resets (
  account integer NOT NULL,
  token bytea NOT NULL,
  expires_at timestamp(3) with time zone NOT NULL,
  CONSTRAINT password_resets_pkey PRIMARY KEY (account),
  CONSTRAINT password_resets_token_key UNIQUE (token),
  CONSTRAINT password_resets_account_fkey FOREIGN KEY (account) REFERENCES accounts(no) ON DELETE CASCADE
);

CREATE TABLE invitations (
  id text COLLATE "C" NOT NULL,
  org integer,
  email text COLLATE "C" NOT NULL,
  role text NOT NULL,
  token bytea NOT NULL,
  invited_by integer,
  created_at timestamp(3) with time zone NOT NULL,
  expires_at timestamp(3) with time zone NOT NULL,
  CONSTRAINT invitations_role_check CHECK (role = ANY (ARRAY['owner'::text, 'admin'::text, 'developer'::text, 'viewer'::text])),
  CONSTRAINT invitations_pkey PRIMARY KEY (id),
  CONSTRAINT invitations_token_key UNIQUE (token),
  CONSTRAINT invitations_org_fkey FOREIGN KEY (org) REFERENCES organizations(no) ON DELETE CASCADE,
  CONSTRAINT invitations_invited_by_fkey FOREIGN KEY (invited_by) REFERENCES accounts(no) ON DELETE SET NULL
);
CREATE UNIQUE INDEX invitations_once ON invitations USING btree (COALESCE(org, 0), email);
CREATE INDEX invitations_expiry ON invitations USING btree (expires_at);

CREATE TABLE content_reads (
  env integer NOT NULL,
  conv bigint NOT NULL,
  account integer NOT NULL,
  hour timestamp with time zone NOT NULL,
  CONSTRAINT content_reads_pkey PRIMARY KEY (conv, account, hour, env),
  CONSTRAINT content_reads_account_fkey FOREIGN KEY (account) REFERENCES accounts(no) ON DELETE CASCADE
);
CREATE INDEX content_reads_hour ON content_reads USING btree (hour);

CREATE TABLE request_log (
  env integer NOT NULL,
  at timestamp(3) with time zone NOT NULL,
  no bigint NOT NULL DEFAULT nextval('request_log_no'::regclass),
  kind text NOT NULL,
  failed boolean NOT NULL,
  request_id text COLLATE "C",
  method text,
  operation text,
  status integer,
  code text,
  ms integer NOT NULL,
  caller text,
  caller_id text,
  usr bigint,
  address text,
  session text COLLATE "C",
  webhook text COLLATE "C",
  delivery text COLLATE "C"
) PARTITION BY RANGE (at);
CREATE INDEX request_log_at ON request_log USING btree (env, at, no);
CREATE INDEX request_log_failed ON request_log USING btree (env, at, no) WHERE failed;
CREATE INDEX request_log_user ON request_log USING btree (env, usr, at, no) WHERE usr IS NOT NULL;

CREATE TABLE activity (
  env integer NOT NULL,
  at timestamp(0) with time zone NOT NULL,
  messages bigint NOT NULL,
  requests bigint NOT NULL,
  errors bigint NOT NULL,
  server_errors bigint NOT NULL,
  socket_errors bigint NOT NULL,
  webhooks_ok bigint NOT NULL,
  webhooks_failed bigint NOT NULL,
  CONSTRAINT activity_pkey PRIMARY KEY (env, at)
) WITH (fillfactor=70);
CREATE INDEX activity_at ON activity USING btree (at);

CREATE TABLE socket_sessions (
  env integer NOT NULL,
  id text COLLATE "C" NOT NULL,
  usr bigint NOT NULL,
  node text COLLATE "C" NOT NULL,
  address text,
  sdk text,
  opened_at timestamp(3) with time zone NOT NULL,
  closed_at timestamp(3) with time zone,
  close_code integer,
  CONSTRAINT socket_sessions_pkey PRIMARY KEY (env, id)
) WITH (fillfactor=70);
CREATE INDEX socket_sessions_user ON socket_sessions USING btree (env, usr, id);
CREATE INDEX socket_sessions_open ON socket_sessions USING btree (env, id) WHERE closed_at IS NULL;
CREATE INDEX socket_sessions_node ON socket_sessions USING btree (node) WHERE closed_at IS NULL;
CREATE INDEX socket_sessions_closed ON socket_sessions USING brin (closed_at);

CREATE TABLE nodes (
  id text COLLATE "C" NOT NULL,
  host text NOT NULL,
  version text NOT NULL,
  roles text[] NOT NULL,
  started_at timestamp(3) with time zone NOT NULL,
  seen_at timestamp(3) with time zone NOT NULL,
  CONSTRAINT nodes_pkey PRIMARY KEY (id)
);

CREATE TABLE push_attempts (
  env integer NOT NULL,
  conv bigint NOT NULL,
  seq bigint NOT NULL,
  usr bigint NOT NULL,
  device bigint NOT NULL,
  provider text NOT NULL,
  result text NOT NULL,
  reason text,
  at timestamp(3) with time zone NOT NULL
);
CREATE INDEX push_attempts_message ON push_attempts USING btree (conv, seq, usr);
CREATE INDEX push_attempts_at ON push_attempts USING brin (at);
CREATE INDEX push_attempts_sent ON push_attempts USING btree (device, conv, seq) WHERE result = 'sent'::text;

CREATE TABLE activity_notes (
  at timestamp(3) with time zone NOT NULL,
  size integer NOT NULL DEFAULT 1,
  c_env integer[],
  c_no bigint[],
  place integer[],
  usr bigint[],
  kind integer[],
  refused text[],
  env integer,
  users bigint[],
  counts jsonb
) WITH (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=5000, toast_tuple_target=8160);
ALTER TABLE activity_notes ALTER COLUMN c_env SET STORAGE EXTERNAL;
ALTER TABLE activity_notes ALTER COLUMN c_no SET STORAGE EXTERNAL;
ALTER TABLE activity_notes ALTER COLUMN place SET STORAGE EXTERNAL;
ALTER TABLE activity_notes ALTER COLUMN usr SET STORAGE EXTERNAL;
ALTER TABLE activity_notes ALTER COLUMN kind SET STORAGE EXTERNAL;
ALTER TABLE activity_notes ALTER COLUMN refused SET STORAGE EXTERNAL;

CREATE TABLE counters (
  env integer NOT NULL,
  step smallint NOT NULL,
  at timestamp(0) with time zone NOT NULL,
  counts jsonb NOT NULL,
  CONSTRAINT counters_pkey PRIMARY KEY (env, step, at)
) WITH (fillfactor=70);

CREATE TABLE message_hours (
  env integer NOT NULL,
  at timestamp(0) with time zone NOT NULL,
  messages bigint NOT NULL,
  CONSTRAINT message_hours_pkey PRIMARY KEY (env, at)
) WITH (fillfactor=70);

CREATE TABLE active_users (
  env integer NOT NULL,
  step smallint NOT NULL,
  at timestamp(0) with time zone NOT NULL,
  chunk integer NOT NULL,
  bits bit(8192) NOT NULL,
  CONSTRAINT active_users_pkey PRIMARY KEY (env, step, at, chunk)
) WITH (fillfactor=70, toast_tuple_target=128);
ALTER TABLE active_users ALTER COLUMN bits SET STORAGE MAIN;

CREATE TABLE active_months (
  env integer NOT NULL,
  at timestamp(0) with time zone NOT NULL,
  n bigint NOT NULL,
  CONSTRAINT active_months_pkey PRIMARY KEY (env, at)
) WITH (fillfactor=70);

CREATE TABLE conversation_activity (
  env integer NOT NULL,
  step smallint NOT NULL,
  at timestamp(0) with time zone NOT NULL,
  conv bigint NOT NULL,
  messages bigint NOT NULL,
  senders bigint[] NOT NULL,
  last_at timestamp(3) with time zone NOT NULL,
  CONSTRAINT conversation_activity_pkey PRIMARY KEY (env, step, at, conv)
) WITH (fillfactor=70);

CREATE TABLE sender_activity (
  env integer NOT NULL,
  step smallint NOT NULL,
  at timestamp(0) with time zone NOT NULL,
  usr bigint NOT NULL,
  messages bigint NOT NULL,
  CONSTRAINT sender_activity_pkey PRIMARY KEY (env, step, at, usr)
) WITH (fillfactor=70);

CREATE TABLE activity_tops (
  env integer NOT NULL,
  step smallint NOT NULL,
  at timestamp(0) with time zone NOT NULL,
  kind text NOT NULL,
  nos bigint[] NOT NULL,
  messages bigint[] NOT NULL,
  CONSTRAINT activity_tops_kind_check CHECK (kind = ANY (ARRAY['conversation'::text, 'sender'::text])),
  CONSTRAINT activity_tops_pkey PRIMARY KEY (env, step, at, kind)
) WITH (fillfactor=70);

CREATE TABLE plan_notices (
  env integer NOT NULL,
  at timestamp(0) with time zone NOT NULL,
  what text NOT NULL,
  percent integer NOT NULL,
  CONSTRAINT plan_notices_what_check CHECK (what = ANY (ARRAY['users'::text, 'connections'::text])),
  CONSTRAINT plan_notices_pkey PRIMARY KEY (env, at, what, percent)
);

CREATE TABLE analytics_fill (
  one boolean NOT NULL DEFAULT true,
  cut timestamp(3) with time zone,
  cut_xid xid8,
  conv bigint NOT NULL DEFAULT 0,
  seq bigint NOT NULL DEFAULT 0,
  done bigint NOT NULL DEFAULT 0,
  total bigint NOT NULL,
  finished_at timestamp(3) with time zone,
  stage smallint NOT NULL DEFAULT 0,
  CONSTRAINT analytics_fill_one_check CHECK (one),
  CONSTRAINT analytics_fill_pkey PRIMARY KEY (one)
);

CREATE TABLE storage (
  env integer NOT NULL,
  mode text NOT NULL DEFAULT 'managed'::text,
  active text,
  previous text,
  has_cold boolean NOT NULL DEFAULT false,
  copy jsonb,
  owner text,
  owned_until timestamp(3) with time zone NOT NULL DEFAULT '-infinity'::timestamp with time zone,
  due_at timestamp(3) with time zone NOT NULL DEFAULT '-infinity'::timestamp with time zone,
  failures integer NOT NULL DEFAULT 0,
  status text NOT NULL DEFAULT 'healthy'::text,
  since timestamp(3) with time zone,
  last_success_at timestamp(3) with time zone,
  error text,
  error_class text,
  pruned_at timestamp(3) with time zone NOT NULL DEFAULT '-infinity'::timestamp with time zone,
  media integer,
  media_test jsonb,
  taken_at timestamp(3) with time zone NOT NULL DEFAULT '-infinity'::timestamp with time zone,
  missing bigint NOT NULL DEFAULT 0,
  CONSTRAINT storage_pkey PRIMARY KEY (env),
  CONSTRAINT storage_env_fkey FOREIGN KEY (env) REFERENCES environments(no)
);

CREATE TABLE storage_slots (
  env integer NOT NULL,
  slot text NOT NULL,
  type text NOT NULL,
  url bytea NOT NULL,
  replica_url bytea,
  secrets bytea,
  shown_url text NOT NULL,
  shown_replica_url text,
  schema text,
  schema_version integer,
  database_id text,
  last_test jsonb,
  created_at timestamp(3) with time zone NOT NULL,
  changed_at timestamp(3) with time zone NOT NULL,
  erase_due_at timestamp(3) with time zone NOT NULL DEFAULT '-infinity'::timestamp with time zone,
  erase_failures integer NOT NULL DEFAULT 0,
  erase_error text,
  CONSTRAINT storage_slots_slot_check CHECK (slot = ANY (ARRAY['a'::text, 'b'::text])),
  CONSTRAINT storage_slots_pkey PRIMARY KEY (env, slot),
  CONSTRAINT storage_slots_env_fkey FOREIGN KEY (env) REFERENCES environments(no)
);

CREATE TABLE sink_log (
  no bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  env integer NOT NULL,
  conv bigint NOT NULL,
  seq bigint NOT NULL,
  message bigint,
  at timestamp(3) with time zone NOT NULL,
  CONSTRAINT sink_log_pkey PRIMARY KEY (env, no)
);

CREATE TABLE sink_refused (
  env integer NOT NULL,
  conv bigint NOT NULL,
  message bigint NOT NULL,
  error text NOT NULL,
  at timestamp(3) with time zone NOT NULL,
  CONSTRAINT sink_refused_pkey PRIMARY KEY (env, conv, message)
);

CREATE TABLE sink_conversations (
  env integer NOT NULL,
  conv bigint NOT NULL,
  cold_seq bigint NOT NULL DEFAULT 0,
  oldest_at timestamp(3) with time zone,
  want_seq bigint,
  CONSTRAINT sink_conversations_pkey PRIMARY KEY (env, conv)
);
CREATE INDEX sink_conversations_oldest ON sink_conversations USING btree (env, oldest_at);
CREATE INDEX sink_conversations_wanted ON sink_conversations USING btree (env) WHERE want_seq IS NOT NULL;

CREATE TABLE sink_erasures (
  no bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  env integer NOT NULL,
  subject bytea NOT NULL,
  replacement text NOT NULL,
  messages text NOT NULL,
  created_at timestamp(3) with time zone NOT NULL,
  slots text[] NOT NULL DEFAULT '{a,b}'::text[],
  CONSTRAINT sink_erasures_pkey PRIMARY KEY (no)
);
CREATE INDEX sink_erasures_env ON sink_erasures USING btree (env, no);

CREATE TABLE media_storages (
  no integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  env integer NOT NULL,
  provider text NOT NULL,
  config bytea NOT NULL,
  shown jsonb NOT NULL,
  created_at timestamp(3) with time zone NOT NULL,
  CONSTRAINT media_storages_pkey PRIMARY KEY (no),
  CONSTRAINT media_storages_env_fkey FOREIGN KEY (env) REFERENCES environments(no)
);
CREATE INDEX media_storages_env ON media_storages USING btree (env);

CREATE TABLE calls (
  env integer NOT NULL,
  no bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  id text COLLATE "C" NOT NULL,
  conv bigint NOT NULL,
  kind text NOT NULL,
  status text NOT NULL,
  created_by bigint NOT NULL,
  end_reason text,
  metadata text,
  created_at timestamp(3) with time zone NOT NULL,
  answered_at timestamp(3) with time zone,
  ended_at timestamp(3) with time zone,
  node text,
  epoch integer NOT NULL DEFAULT 1,
  unhosted_since timestamp(3) with time zone,
  CONSTRAINT calls_kind_check CHECK (kind = ANY (ARRAY['audio'::text, 'video'::text])),
  CONSTRAINT calls_status_check CHECK (status = ANY (ARRAY['ringing'::text, 'active'::text, 'ended'::text])),
  CONSTRAINT calls_pkey PRIMARY KEY (no, env),
  CONSTRAINT calls_env_id_key UNIQUE (env, id)
);
CREATE UNIQUE INDEX calls_live ON calls USING btree (env, conv) WHERE status <> 'ended'::text;
CREATE INDEX calls_live_env ON calls USING btree (env, no) WHERE status <> 'ended'::text;
CREATE INDEX calls_node ON calls USING btree (node) WHERE status <> 'ended'::text;
CREATE INDEX calls_conv ON calls USING btree (env, conv, no);
CREATE INDEX calls_env ON calls USING btree (env, no);
CREATE INDEX calls_created ON calls USING btree (env, created_at);

CREATE TABLE call_participants (
  env integer NOT NULL,
  call bigint NOT NULL,
  usr bigint NOT NULL,
  state text NOT NULL,
  invited_at timestamp(3) with time zone NOT NULL,
  joined_at timestamp(3) with time zone,
  left_at timestamp(3) with time zone,
  stay_from timestamp(3) with time zone,
  seconds integer NOT NULL DEFAULT 0,
  device text,
  session text COLLATE "C",
  gone_at timestamp(3) with time zone,
  pushed boolean NOT NULL DEFAULT false,
  reached boolean NOT NULL DEFAULT false,
  CONSTRAINT call_participants_state_check CHECK (state = ANY (ARRAY['ringing'::text, 'joining'::text, 'joined'::text, 'left'::text, 'declined'::text, 'missed'::text, 'busy'::text])),
  CONSTRAINT call_participants_pkey PRIMARY KEY (call, usr, env)
) WITH (fillfactor=80);
CREATE INDEX call_participants_user ON call_participants USING btree (env, usr, call);
CREATE INDEX call_participants_in ON call_participants USING btree (env, usr) WHERE state = ANY (ARRAY['ringing'::text, 'joining'::text, 'joined'::text]);
CREATE INDEX call_participants_here ON call_participants USING btree (call) WHERE (state = ANY (ARRAY['joining'::text, 'joined'::text])) AND gone_at IS NULL;

CREATE TABLE media_nodes (
  id text COLLATE "C" NOT NULL,
  state text NOT NULL,
  detail text NOT NULL DEFAULT ''::text,
  load real NOT NULL DEFAULT 0,
  ready_at timestamp(3) with time zone,
  rtp_capabilities jsonb,
  lease_until timestamp(3) with time zone NOT NULL,
  CONSTRAINT media_nodes_state_check CHECK (state = ANY (ARRAY['preparing'::text, 'ready'::text, 'draining'::text, 'failed'::text])),
  CONSTRAINT media_nodes_pkey PRIMARY KEY (id)
);

CREATE TABLE store_clock (
  one boolean NOT NULL DEFAULT true,
  seen timestamp with time zone NOT NULL,
  ahead interval NOT NULL DEFAULT '00:00:00'::interval,
  stepped_at timestamp with time zone,
  epoch text NOT NULL DEFAULT (gen_random_uuid())::text,
  epoch_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  place text NOT NULL DEFAULT ''::text,
  CONSTRAINT store_clock_one_check CHECK (one),
  CONSTRAINT store_clock_pkey PRIMARY KEY (one)
);

CREATE TABLE store_marks (
  mark text NOT NULL,
  at timestamp with time zone NOT NULL,
  CONSTRAINT store_marks_pkey PRIMARY KEY (mark)
);
CREATE INDEX store_marks_at ON store_marks USING btree (at);

CREATE TABLE sent_ids (
  env integer NOT NULL,
  conv bigint NOT NULL,
  sender bigint NOT NULL,
  client_msg_id text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  created_at timestamp(3) with time zone NOT NULL
) PARTITION BY RANGE (created_at);
CREATE INDEX sent_ids_key ON sent_ids USING btree (conv, sender, client_msg_id, env);

CREATE TABLE sent_ids_other PARTITION OF sent_ids DEFAULT;
CREATE INDEX sent_ids_other_created ON sent_ids_other USING btree (created_at);

CREATE TABLE slot_faults (
  env integer NOT NULL,
  slot text NOT NULL,
  faulted_at timestamp(3) with time zone,
  aside_until timestamp(3) with time zone,
  CONSTRAINT slot_faults_slot_check CHECK (slot = ANY (ARRAY['a'::text, 'b'::text])),
  CONSTRAINT slot_faults_pkey PRIMARY KEY (env, slot),
  CONSTRAINT slot_faults_env_fkey FOREIGN KEY (env) REFERENCES environments(no)
);

CREATE TABLE reactions (
  env integer NOT NULL,
  conv bigint NOT NULL,
  message bigint NOT NULL,
  usr bigint NOT NULL,
  emoji text COLLATE "C" NOT NULL,
  at timestamp(3) with time zone NOT NULL,
  CONSTRAINT reactions_pkey PRIMARY KEY (conv, usr, message, emoji, env)
);
CREATE INDEX reactions_of_message ON reactions USING btree (conv, message, emoji, at, usr);

CREATE TABLE message_reactions (
  env integer NOT NULL,
  conv bigint NOT NULL,
  message bigint NOT NULL,
  counts text NOT NULL DEFAULT '[]'::text,
  total bigint NOT NULL DEFAULT 0,
  revision bigint NOT NULL DEFAULT 0,
  waiting boolean NOT NULL DEFAULT false,
  due_at timestamp(3) with time zone,
  changes text,
  CONSTRAINT message_reactions_pkey PRIMARY KEY (conv, message, env)
) WITH (fillfactor=70);
CREATE INDEX message_reactions_due ON message_reactions USING btree (due_at) WHERE waiting;

CREATE TABLE pins (
  env integer NOT NULL,
  conv bigint NOT NULL,
  message bigint NOT NULL,
  by bigint,
  at timestamp(3) with time zone NOT NULL,
  CONSTRAINT pins_pkey PRIMARY KEY (conv, message, env)
);

CREATE TABLE mentions (
  env integer NOT NULL,
  conv bigint NOT NULL,
  usr bigint NOT NULL,
  seq bigint NOT NULL,
  thread bigint,
  sender bigint,
  at timestamp(3) with time zone NOT NULL,
  CONSTRAINT mentions_pkey PRIMARY KEY (conv, usr, seq, env)
);
CREATE INDEX mentions_of_user ON mentions USING btree (usr, at, conv, seq) WHERE usr <> 0;

CREATE TABLE blocks (
  env integer NOT NULL,
  usr bigint NOT NULL,
  blocked bigint NOT NULL,
  at timestamp(3) with time zone NOT NULL,
  CONSTRAINT blocks_pkey PRIMARY KEY (usr, blocked, env)
);
CREATE INDEX blocks_by_blocked ON blocks USING btree (blocked, usr);

CREATE TABLE restrictions (
  env integer NOT NULL,
  conv bigint NOT NULL,
  usr bigint NOT NULL,
  kind text NOT NULL,
  until timestamp(3) with time zone,
  reason text,
  by_usr bigint,
  at timestamp(3) with time zone NOT NULL,
  CONSTRAINT restrictions_pkey PRIMARY KEY (conv, usr, env)
);
CREATE INDEX restrictions_by_user ON restrictions USING btree (usr, conv);
CREATE INDEX restrictions_ended ON restrictions USING btree (until) WHERE until IS NOT NULL;

CREATE TABLE word_lists (
  env integer NOT NULL,
  name text COLLATE "C" NOT NULL,
  action text NOT NULL,
  conversations text NOT NULL,
  entries text NOT NULL,
  updated_at timestamp(3) with time zone NOT NULL,
  CONSTRAINT word_lists_pkey PRIMARY KEY (env, name)
);

CREATE TABLE reports (
  env integer NOT NULL,
  id text COLLATE "C" NOT NULL,
  head text COLLATE "C" NOT NULL,
  reporter bigint NOT NULL,
  kind text NOT NULL,
  target bigint NOT NULL,
  seq bigint NOT NULL,
  message_id text,
  version integer NOT NULL,
  usr bigint,
  reason text NOT NULL,
  note text,
  snapshot bytea,
  status text NOT NULL,
  at timestamp(3) with time zone NOT NULL,
  actions text,
  resolution text,
  resolver text,
  resolved_at timestamp(3) with time zone,
  CONSTRAINT reports_pkey PRIMARY KEY (env, id)
);
CREATE INDEX reports_by_head ON reports USING btree (env, head);
CREATE INDEX reports_by_status ON reports USING btree (env, status, head);
CREATE INDEX reports_by_target ON reports USING btree (env, target, seq, kind);
CREATE INDEX reports_by_user ON reports USING btree (env, usr, head) WHERE usr IS NOT NULL;
CREATE INDEX reports_by_reporter ON reports USING btree (env, reporter);
CREATE INDEX reports_ended ON reports USING btree (resolved_at) WHERE resolved_at IS NOT NULL;

CREATE TABLE hooks (
  no bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  env integer NOT NULL,
  kind text NOT NULL,
  url text NOT NULL,
  timeout_ms integer NOT NULL,
  on_failure text NOT NULL,
  edits boolean NOT NULL,
  servers boolean NOT NULL,
  types text,
  created_at timestamp(3) with time zone NOT NULL,
  updated_at timestamp(3) with time zone NOT NULL,
  failing_since timestamp(3) with time zone,
  CONSTRAINT hooks_pkey PRIMARY KEY (no),
  CONSTRAINT hooks_env_kind_key UNIQUE (env, kind)
);

CREATE TABLE hook_secrets (
  no bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  hook bigint NOT NULL,
  secret bytea NOT NULL,
  expires_at timestamp(3) with time zone,
  CONSTRAINT hook_secrets_pkey PRIMARY KEY (no),
  CONSTRAINT hook_secrets_hook_fkey FOREIGN KEY (hook) REFERENCES hooks(no) ON DELETE CASCADE
);
CREATE INDEX hook_secrets_hook ON hook_secrets USING btree (hook);

CREATE TABLE listed_groups (
  env integer NOT NULL,
  conv bigint NOT NULL,
  members integer NOT NULL,
  name text COLLATE "C" NOT NULL,
  CONSTRAINT listed_groups_pkey PRIMARY KEY (conv, env)
);
CREATE INDEX listed_groups_by_size ON listed_groups USING btree (env, members DESC, name, conv);

CREATE TABLE listed_words (
  env integer NOT NULL,
  word text COLLATE "C" NOT NULL,
  conv bigint NOT NULL,
  CONSTRAINT listed_words_pkey PRIMARY KEY (env, word, conv)
);
CREATE INDEX listed_words_by_conv ON listed_words USING btree (conv);

CREATE TABLE invite_links (
  env integer NOT NULL,
  id text COLLATE "C" NOT NULL,
  conv bigint NOT NULL,
  token bytea NOT NULL,
  uses integer NOT NULL DEFAULT 0,
  max_uses integer,
  expires_at timestamp(3) with time zone NOT NULL,
  created_at timestamp(3) with time zone NOT NULL,
  creator bigint,
  CONSTRAINT invite_links_pkey PRIMARY KEY (env, id)
);
CREATE UNIQUE INDEX invite_links_by_token ON invite_links USING btree (token, env);
CREATE INDEX invite_links_by_conv ON invite_links USING btree (conv, created_at);
CREATE INDEX invite_links_by_creator ON invite_links USING btree (creator) WHERE creator IS NOT NULL;
CREATE INDEX invite_links_ended ON invite_links USING btree (expires_at);

INSERT INTO store_clock (seen) VALUES (clock_timestamp());
INSERT INTO store_marks (mark, at) VALUES (substr(replace(gen_random_uuid()::text, '-', ''), 1, 16), clock_timestamp());
DO $$
DECLARE
  day date;
BEGIN
  FOR day IN SELECT (now() AT TIME ZONE 'UTC')::date + i FROM generate_series(0, 1) i LOOP
    EXECUTE format('CREATE TABLE %I PARTITION OF sent_ids FOR VALUES FROM (%L) TO (%L)',
      'sent_ids_' || to_char(day, 'YYYYMMDD'), day::text || ' 00:00:00+00', (day + 1)::text || ' 00:00:00+00');
  END LOOP;
END $$;
