-- Who blocks whom. The key finds whom a user blocks, the index by whom a user is blocked. A direct conversation of two users of
-- whom one blocks the other has bit 256 of its flags, which every append reads with the row that it locks: a send looks up nothing.
CREATE TABLE blocks (
  env int NOT NULL,
  usr bigint NOT NULL, -- who blocks
  blocked bigint NOT NULL,
  at timestamptz(3) NOT NULL,
  PRIMARY KEY (usr, blocked, env)
);
CREATE INDEX blocks_by_blocked ON blocks (blocked, usr);
-- Both take more parameters.
DROP FUNCTION IF EXISTS append_verdict(int, text, bigint, bigint, bigint, tid, text);
DROP FUNCTION IF EXISTS set_reactions(int[], bigint[], bigint[], bigint[], text[], boolean[], boolean[], int);
