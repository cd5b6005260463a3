-- no transaction
-- Retention finds what is past its time, oldest first, environment by environment where each has its own time. The block ranges that were
-- asked before tell less and less: a range whose freed space is used again is old and new at once for ever. (`+ 0`: no other statement may
-- take it for a way to find the events of a conversation.)
CREATE INDEX CONCURRENTLY IF NOT EXISTS events_by_age ON events ((env + 0), created_at);
CREATE INDEX CONCURRENTLY IF NOT EXISTS idempotency_by_age ON idempotency (created_at);
DROP INDEX CONCURRENTLY IF EXISTS events_created;
DROP INDEX CONCURRENTLY IF EXISTS idempotency_created;
