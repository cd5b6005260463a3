-- Calls are counted by triggers, in the transaction that changes them, whatever changes them.
CREATE OR REPLACE FUNCTION note_call() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  counts jsonb := '{}';
BEGIN
  IF TG_OP = 'INSERT' THEN
    counts := jsonb_build_object('calls', 1, 'videoCalls', (NEW.kind = 'video')::int);
  ELSE
    IF OLD.answered_at IS NULL AND NEW.answered_at IS NOT NULL THEN counts := counts || '{"callsAnswered": 1}'; END IF;
    IF OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL THEN
      IF NEW.end_reason = 'missed' THEN counts := counts || '{"callsMissed": 1}'; END IF;
      IF NEW.answered_at IS NOT NULL THEN
        counts := counts || jsonb_build_object('callsEnded', 1, 'callSeconds', floor(extract(epoch FROM NEW.ended_at - NEW.answered_at)));
      END IF;
    END IF;
  END IF;
  IF counts <> '{}' THEN INSERT INTO activity_notes (at, env, counts) VALUES (clock_timestamp(), NEW.env, counts); END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER count_calls AFTER INSERT OR UPDATE ON calls FOR EACH ROW EXECUTE FUNCTION note_call();

-- A participant is active when joining (note_connected) and when the media connects; the minutes count when the
-- participant leaves.
CREATE OR REPLACE FUNCTION note_call_participant() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  seconds bigint := coalesce(NEW.seconds, 0);
  joined boolean := NEW.joined_at IS NOT NULL;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    seconds := seconds - coalesce(OLD.seconds, 0);
    joined := NEW.joined_at IS DISTINCT FROM OLD.joined_at AND joined;
  END IF;
  IF joined OR seconds <> 0 THEN
    INSERT INTO activity_notes (at, env, users, counts)
      VALUES (clock_timestamp(), NEW.env, CASE WHEN joined THEN ARRAY[NEW.usr] END, jsonb_build_object('callMs', seconds * 1000));
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER count_call_participants AFTER INSERT OR UPDATE ON call_participants
  FOR EACH ROW EXECUTE FUNCTION note_call_participant();
