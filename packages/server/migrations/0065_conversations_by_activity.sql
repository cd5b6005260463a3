-- no transaction
-- runs beside earlier versions
-- The dashboard lists all conversations of an environment, newest activity first. The step changes seldom, so that most
-- messages do not touch this index. It begins with an expression, so that the planner never takes it to look up one
-- conversation: that would read the whole environment.
CREATE INDEX CONCURRENTLY IF NOT EXISTS conversations_by_activity ON conversations ((env + 0), last_activity_step DESC, no DESC) WHERE deleted_at IS NULL;
