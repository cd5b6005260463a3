-- no transaction
-- Which user's client made a conversation (null: a server did): what a client may make in an hour, and in all, is bounded. The
-- index holds just what is counted.
ALTER TABLE conversations ADD COLUMN IF NOT EXISTS creator bigint;
CREATE INDEX CONCURRENTLY IF NOT EXISTS conversations_by_creator ON conversations (creator, created_at) INCLUDE (env)
  WHERE creator IS NOT NULL AND deleted_at IS NULL;
