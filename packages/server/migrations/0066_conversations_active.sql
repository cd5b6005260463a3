-- no transaction
-- runs beside earlier versions
-- In place of the index of 0065, which the planner also took to look up one conversation: that reads the whole
-- environment. An index that begins with an expression serves only the statements that ask for it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS conversations_active ON conversations ((env + 0), last_activity_step DESC, no DESC) WHERE deleted_at IS NULL;
DROP INDEX CONCURRENTLY IF EXISTS conversations_by_activity;
