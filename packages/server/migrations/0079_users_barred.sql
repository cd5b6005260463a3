-- runs beside earlier versions
-- A message that was on its way when its user was deactivated is refused, too.
DROP INDEX users_barred;
CREATE INDEX users_barred ON users (no) WHERE erased_at IS NOT NULL OR silenced_until IS NOT NULL OR deactivated_at IS NOT NULL;
