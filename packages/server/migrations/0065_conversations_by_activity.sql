-- no transaction
-- runs beside earlier versions
-- The dashboard lists all conversations of an environment, newest activity first. The step changes seldom, so that most
-- messages do not touch this index.
CREATE INDEX CONCURRENTLY IF NOT EXISTS conversations_by_activity ON conversations (env, last_activity_step DESC, no DESC) WHERE deleted_at IS NULL;
