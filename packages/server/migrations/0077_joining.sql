-- Groups that everybody finds (rules.listed), with what they are sorted and found by. It stands beside the conversations, so that
-- a conversation that is not listed costs nothing, and a send to one that is touches nothing of it.
CREATE TABLE listed_groups (
  env int NOT NULL,
  conv bigint NOT NULL,
  members int NOT NULL,
  name text COLLATE "C" NOT NULL,
  PRIMARY KEY (conv, env)
);
CREATE INDEX listed_groups_by_size ON listed_groups (env, members DESC, name, conv);
-- The words of their names, without case and accents.
CREATE TABLE listed_words (
  env int NOT NULL,
  word text COLLATE "C" NOT NULL,
  conv bigint NOT NULL,
  PRIMARY KEY (env, word, conv)
);
CREATE INDEX listed_words_by_conv ON listed_words (conv);

-- Links by which users join groups. Of the token only a hash is kept; what is used up, ended or revoked is not told apart.
CREATE TABLE invite_links (
  env int NOT NULL,
  id text COLLATE "C" NOT NULL,
  conv bigint NOT NULL,
  token bytea NOT NULL, -- SHA-256
  uses int NOT NULL DEFAULT 0,
  max_uses int, -- null: no limit
  expires_at timestamptz(3) NOT NULL,
  created_at timestamptz(3) NOT NULL,
  creator bigint, -- null: a server
  PRIMARY KEY (env, id)
);
CREATE UNIQUE INDEX invite_links_by_token ON invite_links (token, env);
CREATE INDEX invite_links_by_conv ON invite_links (conv, created_at);
CREATE INDEX invite_links_by_creator ON invite_links (creator) WHERE creator IS NOT NULL;
CREATE INDEX invite_links_ended ON invite_links (expires_at);

-- When a former member sent last while slow mode was on: who leaves and comes back waits on.
ALTER TABLE departures ADD COLUMN last_sent_at timestamptz(3);
