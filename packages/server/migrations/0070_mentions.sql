-- One row for each mentioned member, and one with usr = 0 for a message that mentions all together. The key counts what is unread;
-- the index lists the messages that name a user. A message's own list, with users who are no members and ranges, is in its extras.
CREATE TABLE mentions (
  env int NOT NULL,
  conv bigint NOT NULL,
  usr bigint NOT NULL,
  seq bigint NOT NULL, -- of the message
  thread bigint, -- null: in the main timeline
  sender bigint, -- null: the system
  at timestamptz(3) NOT NULL, -- when the message was sent
  PRIMARY KEY (conv, usr, seq, env)
);
CREATE INDEX mentions_of_user ON mentions (usr, at, conv, seq) WHERE usr <> 0;

-- The level of a member is `none` while it is muted, until muted_until if that is set; otherwise it is `level`: 1 all, 2 mentions,
-- null the environment's default.
ALTER TABLE members ADD COLUMN level smallint, ADD COLUMN muted_until timestamptz(3);

-- An erased user may be named in conversations that it was never in: what is kept of their events is found by this.
CREATE INDEX webhook_payloads_mentions ON webhook_payloads (env) WHERE strpos(data, '"mentions":') > 0;

-- Their parameters or results change.
DROP FUNCTION IF EXISTS tell_of_messages(int, int[], bigint[], bigint[], int[], int[], bigint[], text[], text[], text[], text[], text[], text[], timestamptz);
DROP FUNCTION IF EXISTS mark_read(int[], text[], bigint[], bigint[], int);
