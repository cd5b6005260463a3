-- Who is banned from a conversation, or silenced in it; conv 0: in the whole environment. A silence stands in the row of the
-- member or of the user, too, which a send reads anyway. A restriction ends by the comparison of times.
CREATE TABLE restrictions (
  env int NOT NULL,
  conv bigint NOT NULL,
  usr bigint NOT NULL,
  kind text NOT NULL, -- ban or silence
  until timestamptz(3), -- null: it has no end
  reason text,
  by_usr bigint, -- null: a server, or people who run the environment
  at timestamptz(3) NOT NULL,
  PRIMARY KEY (conv, usr, env)
);
CREATE INDEX restrictions_by_user ON restrictions (usr, conv);
CREATE INDEX restrictions_ended ON restrictions (until) WHERE until IS NOT NULL;
ALTER TABLE members ADD COLUMN silenced_until timestamptz(3); -- infinity: it has no end
ALTER TABLE users ADD COLUMN silenced_until timestamptz(3), ADD COLUMN deactivated_until timestamptz(3);
-- What a send asks about its sender beside the membership; nearly nobody is in it.
CREATE INDEX users_barred ON users (no) WHERE erased_at IS NOT NULL OR silenced_until IS NOT NULL;
DROP INDEX users_erased;
-- These have other parameters or results.
DROP FUNCTION IF EXISTS sending_member(int, bigint, bigint);
DROP FUNCTION IF EXISTS append_verdict(int, text, bigint, bigint, bigint, tid, text, boolean, int);
