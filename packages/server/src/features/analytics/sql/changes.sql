-- Users, conversations and edits are counted by triggers, in the transaction that stores them, whichever operation does.
CREATE OR REPLACE FUNCTION note_new_rows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO activity_notes (at, env, counts)
    SELECT max(r.created_at), r.env, jsonb_build_object(TG_ARGV[0], count(*)) FROM added r GROUP BY r.env, date_trunc('hour', r.created_at, 'UTC');
  RETURN NULL;
END $$;

-- Deletions are counted by count_deleted, once for each message: a message may have several events of its deletion.
CREATE OR REPLACE FUNCTION note_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO activity_notes (at, env, counts)
    SELECT max(e.created_at), e.env, jsonb_build_object('edits', count(*))
    FROM added e WHERE e.type = 'message.updated' GROUP BY e.env, date_trunc('hour', e.created_at, 'UTC');
  RETURN NULL;
END $$;

-- Only where they are missing: replacing a trigger would make every send wait.
DO $$ BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = 'users'::regclass AND tgname = 'count_new_users') THEN
    CREATE TRIGGER count_new_users AFTER INSERT ON users REFERENCING NEW TABLE AS added
      FOR EACH STATEMENT EXECUTE FUNCTION note_new_rows('newUsers');
  END IF;
  IF NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = 'conversations'::regclass AND tgname = 'count_new_conversations') THEN
    CREATE TRIGGER count_new_conversations AFTER INSERT ON conversations REFERENCING NEW TABLE AS added
      FOR EACH STATEMENT EXECUTE FUNCTION note_new_rows('conversations');
  END IF;
  IF NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = 'events'::regclass AND tgname = 'count_changes') THEN
    CREATE TRIGGER count_changes AFTER INSERT ON events REFERENCING NEW TABLE AS added
      FOR EACH STATEMENT EXECUTE FUNCTION note_changes();
  END IF;
END $$;
