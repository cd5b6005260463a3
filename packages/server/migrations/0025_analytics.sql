-- Analytics, usage and plans (docs/analytics.md). Rows here are counts: none of them holds what people wrote.

-- What happened, written in the transaction that made it happen and folded into the tables below a moment later by count_activity, which
-- removes it in the same transaction: a crash loses nothing and counts nothing twice. A queue without an index: it is read whole.
-- A row is either a batch of messages, as append_messages has it in its hands (the arrays are copied as they are, which costs
-- next to nothing), or what happened in one environment.
CREATE TABLE activity_notes (
  at timestamptz(3) NOT NULL,
  size int NOT NULL DEFAULT 1, -- messages of the batch
  c_env int[],                 -- the conversations of the batch
  c_no bigint[],
  place int[],                 -- of each message: the place of its conversation, from 1
  usr bigint[],                -- its sender; null: the system
  kind int[],                  -- bits: 1 attachments, 2 no text, 4 a reply; null: no message of the batch has any
  refused text[],              -- messages with a verdict here were not written
  env int,
  users bigint[],              -- who was active
  counts jsonb                 -- counter by name, to be added
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- Steps: 0 hours, kept 90 days; 1 days, kept for ever; 2 months, kept for ever. `at` is the beginning of the step, UTC.
CREATE TABLE counters (
  env int NOT NULL,
  step smallint NOT NULL,
  at timestamptz(0) NOT NULL,
  counts jsonb NOT NULL, -- by name; a name that begins with `peak` is a maximum, all others are sums
  PRIMARY KEY (env, step, at)
) WITH (fillfactor = 70);

-- Messages by hour of the day, for the heatmap: kept as long as days.
CREATE TABLE message_hours (
  env int NOT NULL,
  at timestamptz(0) NOT NULL,
  messages bigint NOT NULL,
  PRIMARY KEY (env, at)
) WITH (fillfactor = 70);

-- Who was active in a step: bit `usr % 8192` of chunk `usr / 8192`. Merging is idempotent, whatever comes twice. A chunk is compressed in
-- place where few of its users are active, and never moved out of the row.
CREATE TABLE active_users (
  env int NOT NULL,
  step smallint NOT NULL,
  at timestamptz(0) NOT NULL,
  chunk int NOT NULL,
  bits bit(8192) NOT NULL,
  PRIMARY KEY (env, step, at, chunk)
) WITH (fillfactor = 70, toast_tuple_target = 128);
ALTER TABLE active_users ALTER COLUMN bits SET STORAGE MAIN;

-- The monthly active users as a number. Whoever sets bits of a month holds its row: that is what makes the plan's ceiling exact.
CREATE TABLE active_months (
  env int NOT NULL,
  at timestamptz(0) NOT NULL,
  n bigint NOT NULL,
  PRIMARY KEY (env, at)
) WITH (fillfactor = 70);

-- Messages of a conversation, and of a sender, in a step.
CREATE TABLE conversation_activity (
  env int NOT NULL,
  step smallint NOT NULL,
  at timestamptz(0) NOT NULL,
  conv bigint NOT NULL,
  messages bigint NOT NULL,
  senders bigint[] NOT NULL, -- each once
  last_at timestamptz(3) NOT NULL,
  PRIMARY KEY (env, step, at, conv)
) WITH (fillfactor = 70);
CREATE TABLE sender_activity (
  env int NOT NULL,
  step smallint NOT NULL,
  at timestamptz(0) NOT NULL,
  usr bigint NOT NULL,
  messages bigint NOT NULL,
  PRIMARY KEY (env, step, at, usr)
) WITH (fillfactor = 70);

-- The 100 largest of each step, kept right as the numbers above grow: what does not grow cannot come in.
CREATE TABLE activity_tops (
  env int NOT NULL,
  step smallint NOT NULL,
  at timestamptz(0) NOT NULL,
  kind text NOT NULL CHECK (kind IN ('conversation', 'sender')),
  nos bigint[] NOT NULL,
  messages bigint[] NOT NULL,
  PRIMARY KEY (env, step, at, kind)
) WITH (fillfactor = 70);

-- Sets the bits of a chunk one by one, without a copy for each row of another table.
DO $$ BEGIN
  EXECUTE format('CREATE AGGREGATE set_bits(int, int) (sfunc = set_bit, stype = bit, initcond = %L)', repeat('0', 8192));
END $$;

-- Users, conversations, edits and deletions come from several operations: they are counted where they are kept.
CREATE FUNCTION note_new_rows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO activity_notes (at, env, counts)
    SELECT max(r.created_at), r.env, jsonb_build_object(TG_ARGV[0], count(*)) FROM added r GROUP BY r.env, date_trunc('hour', r.created_at, 'UTC');
  RETURN NULL;
END $$;
CREATE TRIGGER count_new_users AFTER INSERT ON users REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION note_new_rows('newUsers');
CREATE TRIGGER count_new_conversations AFTER INSERT ON conversations REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION note_new_rows('conversations');

CREATE FUNCTION note_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO activity_notes (at, env, counts)
    SELECT max(e.created_at), e.env, jsonb_build_object(CASE e.type WHEN 'message.updated' THEN 'edits' ELSE 'deletions' END, count(*))
    FROM added e WHERE e.type IN ('message.updated', 'message.deleted') GROUP BY e.env, e.type, date_trunc('hour', e.created_at, 'UTC');
  RETURN NULL;
END $$;
CREATE TRIGGER count_changes AFTER INSERT ON events REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION note_changes();
