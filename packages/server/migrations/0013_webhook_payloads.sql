-- What webhooks are told is what was committed with the event, on every attempt and replay. Most events refer to what never changes
-- and are rendered when they are sent. `data` is kept here for those that show what can change: at the commit, or, for message.created,
-- when the message is first edited or deleted.
CREATE TABLE webhook_payloads (
  event_id text COLLATE "C" PRIMARY KEY,
  env int NOT NULL,
  conv bigint NOT NULL,
  message bigint, -- seq of the message that it shows
  data text,      -- JSON; null: a hard deletion or an erasure took it out
  event_at timestamptz(3) NOT NULL
);
CREATE INDEX webhook_payloads_conv ON webhook_payloads (conv, message);
CREATE INDEX webhook_payloads_event_at ON webhook_payloads USING brin (event_at);
