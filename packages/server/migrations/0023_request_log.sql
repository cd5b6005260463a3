-- What happened in an environment: requests, errors of sockets, attempts of webhooks. No bodies, texts or secrets. Users by number: an
-- erasure renames them here as everywhere.
--
-- A partition holds a day (UTC), so that what is past its time goes by dropping a table: a busy log would otherwise be deleted row by row
-- as fast as it is written.
CREATE SEQUENCE request_log_no;
CREATE TABLE request_log (
  env int NOT NULL,
  at timestamptz(3) NOT NULL,
  no bigint NOT NULL DEFAULT nextval('request_log_no'),
  kind text NOT NULL,           -- request, socket, webhook
  failed boolean NOT NULL,      -- an error, or a webhook that was not accepted
  request_id text COLLATE "C",
  method text,
  operation text,
  status int,                   -- over HTTP; of a socket its close code
  code text,                    -- of the error
  ms int NOT NULL,
  caller text,                  -- server, client, dashboard
  caller_id text,               -- of a key, or the e-mail of an account
  usr bigint,
  address text,
  session text COLLATE "C",
  webhook text COLLATE "C",
  delivery text COLLATE "C"
) PARTITION BY RANGE (at);
CREATE INDEX request_log_at ON request_log (env, at, no);
CREATE INDEX request_log_failed ON request_log (env, at, no) WHERE failed;
CREATE INDEX request_log_user ON request_log (env, usr, at, no) WHERE usr IS NOT NULL;
CREATE INDEX request_log_request ON request_log (env, request_id);

-- Exact counts, in steps of 10 s, also of what the log leaves out when there is too much of it.
CREATE TABLE activity (
  env int NOT NULL,
  at timestamptz(0) NOT NULL,
  messages bigint NOT NULL,
  requests bigint NOT NULL,
  errors bigint NOT NULL,        -- answers from 400 on
  server_errors bigint NOT NULL, -- and from 500 on
  socket_errors bigint NOT NULL,
  webhooks_ok bigint NOT NULL,
  webhooks_failed bigint NOT NULL,
  PRIMARY KEY (env, at)
) WITH (fillfactor = 70);
CREATE INDEX activity_at ON activity (at);
