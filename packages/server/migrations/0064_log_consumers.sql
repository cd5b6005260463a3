-- Consumers of the log are told by functions that are made from one list (src/log/consumers.ts).
DROP FUNCTION IF EXISTS append_messages(int[], text[], int[], int[], bigint[], boolean[], text[], text[], text[], text[], text[], text[], int);
DROP FUNCTION IF EXISTS note_for_outbox(int[], bigint[], bigint[], text[], bigint[], timestamptz);
