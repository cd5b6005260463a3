-- no transaction
-- runs beside earlier versions
-- A message that was on its way when its user was deactivated is refused, too. Earlier versions look for fewer users, and find them here.
DROP INDEX CONCURRENTLY IF EXISTS users_refused;
CREATE INDEX CONCURRENTLY users_refused ON users (no) WHERE erased_at IS NOT NULL OR silenced_until IS NOT NULL OR deactivated_at IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS users_barred;
