-- no transaction
-- runs beside earlier versions
-- Copies to a customer's database look up who left a conversation.
CREATE INDEX CONCURRENTLY IF NOT EXISTS departures_by_conversation ON departures (conv, at);
