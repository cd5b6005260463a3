-- Counts edits where their events are stored (migrations/0025), whichever operation stores them. Deletions are counted
-- by count_deleted, once for each message: a message may have several events of its deletion.
CREATE OR REPLACE FUNCTION note_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO activity_notes (at, env, counts)
    SELECT max(e.created_at), e.env, jsonb_build_object('edits', count(*))
    FROM added e WHERE e.type = 'message.updated' GROUP BY e.env, date_trunc('hour', e.created_at, 'UTC');
  RETURN NULL;
END $$;
