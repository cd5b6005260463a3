-- The functions of the group commit are in src/log/sql from here on, with other parameters: what 0001 and 0005 made of them goes, in whichever
-- form it was made.
DO $$
DECLARE
  old regprocedure;
BEGIN
  FOR old IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = current_schema()::regnamespace
    AND p.proname IN ('message_files', 'append_messages', 'append_batch', 'append_one', 'mark_read', 'mark_delivered')
  LOOP
    EXECUTE 'DROP FUNCTION ' || old;
  END LOOP;
END $$;

-- Whether a sender was erased is asked for every message: this index holds nearly nobody.
CREATE INDEX users_erased ON users (no) WHERE erased_at IS NOT NULL;

-- Stores that were made before these checks were dropped.
ALTER TABLE conversations DROP CONSTRAINT IF EXISTS conversations_type_check;
ALTER TABLE members DROP CONSTRAINT IF EXISTS members_role_check;
