-- One row for each user and emoji. The key finds a user's own reactions to a page of messages; the index finds the newest users
-- of an emoji.
CREATE TABLE reactions (
  env int NOT NULL,
  conv bigint NOT NULL,
  message bigint NOT NULL, -- its seq
  usr bigint NOT NULL,
  emoji text COLLATE "C" NOT NULL,
  at timestamptz(3) NOT NULL,
  PRIMARY KEY (conv, usr, message, emoji, env)
);
CREATE INDEX reactions_of_message ON reactions (conv, message, emoji, at, usr);

-- What shows of them. A row that is waiting has its event at due_at; a row that was told keeps in due_at when the next event may
-- follow. Only the first change of a window touches the index, so the others are cheap.
CREATE TABLE message_reactions (
  env int NOT NULL,
  conv bigint NOT NULL,
  message bigint NOT NULL,
  counts text NOT NULL DEFAULT '[]', -- JSON: [[emoji, count, [the newest three users]], …] in the order of first use
  total bigint NOT NULL DEFAULT 0,
  revision bigint NOT NULL DEFAULT 0,
  waiting boolean NOT NULL DEFAULT false,
  due_at timestamptz(3),
  changes text, -- JSON: [[user, emoji, on], …], the newest since the last event
  PRIMARY KEY (conv, message, env)
) WITH (fillfactor = 70);
CREATE INDEX message_reactions_due ON message_reactions (due_at) WHERE waiting;
