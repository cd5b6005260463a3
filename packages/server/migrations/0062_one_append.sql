-- One function appends messages (src/log/sql/append_messages.sql): that for a single message is gone, and the answer of the other
-- says who listens.
DROP FUNCTION IF EXISTS append_message(int, text, bigint, boolean, text, text, text, text, text);
DROP FUNCTION IF EXISTS append_messages(int[], text[], int[], int[], bigint[], boolean[], text[], text[], text[], text[], text[], text[], int);
DROP FUNCTION IF EXISTS why_not_locked(int, text);
DROP FUNCTION IF EXISTS message_sent_before(int, bigint, bigint, text, timestamptz);
