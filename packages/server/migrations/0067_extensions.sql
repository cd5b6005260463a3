-- Extensions keep what they need beside the base: flags of a conversation say what there is, so that one that uses none of
-- it is read and written as before; a plain message has neither a thread nor extras, and takes the same bytes as before.
ALTER TABLE conversations ADD COLUMN flags int NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN thread bigint, ADD COLUMN extras text;
ALTER TABLE users ADD COLUMN personal_rev bigint NOT NULL DEFAULT 0;
DROP FUNCTION IF EXISTS append_messages(int[], text[], int[], int[], bigint[], boolean[], text[], text[], text[], text[], text[], text[], int);
