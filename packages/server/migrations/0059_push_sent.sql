-- no transaction
-- runs beside earlier versions
-- What a device was sent of a conversation: the same message is not pushed twice, and an older one not after a newer one.
CREATE INDEX CONCURRENTLY IF NOT EXISTS push_attempts_sent ON push_attempts (device, conv, seq) WHERE result = 'sent';
