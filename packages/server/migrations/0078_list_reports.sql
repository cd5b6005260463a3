-- A message that a word list wants reported says so to the functions that append it: their parameters change.
DROP FUNCTION IF EXISTS append_messages(int[], text[], int[], int[], bigint[], boolean[], text[], text[], text[], text[], text[], text[], bigint[], text[], int);
DROP FUNCTION IF EXISTS tell_of_messages(int, int[], bigint[], bigint[], int[], int[], bigint[], text[], text[], text[], text[], text[], text[], text[], timestamptz);
