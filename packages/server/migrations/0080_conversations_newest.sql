-- no transaction
-- runs beside earlier versions
-- In place of the index of 0066. A condition that a statement has too is enough for the planner to walk through the whole of a partial
-- index, and while the statistics were those of a small store it did so for every message. This index has no condition: deleted
-- conversations stand apart in it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS conversations_newest ON conversations
  ((CASE WHEN deleted_at IS NULL THEN env END), last_activity_step DESC, no DESC);
DROP INDEX CONCURRENTLY IF EXISTS conversations_active;
