-- Takes messages of one conversation out of this store, oldest first: those that the customer's database has
-- confirmed and that are not needed here. A row keeps what counting needs (migrations/0011). It stops at the first
-- message that must stay: one that was made or changed since p_before, one that the database refused or has not
-- confirmed as it now is, or the latest of the conversation, which lists show. A change of a message holds the lock
-- of the conversation, so while this function has it, the log has a row for every message that is not confirmed. (The
-- caller makes sure that everything from before the log was copied.) Reactions do not lock the conversation, except for its
-- first one, so in one that has some this function also locks the message, for the first reaction to it, and what shows of
-- its reactions, for all others. What others have locked stays. Returns how many messages it looked at; null if the
-- conversation was locked.
CREATE OR REPLACE FUNCTION cool_messages(p_env int, p_conv bigint, p_before timestamptz, p_limit int) RETURNS int LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  latest bigint;
  floor bigint;
  unconfirmed bigint; -- the first message that is not confirmed
  looked int := 0;
  stopped timestamptz;
  m record;
  going bigint[] := '{}';
  reacted boolean; -- it has reactions
  pinned boolean; -- it has, or had, pins
  shown message_reactions;
BEGIN
  SELECT c.last_message_seq, c.flags & 1 <> 0, c.flags & 8 <> 0 INTO latest, reacted, pinned FROM conversations c WHERE c.env = p_env AND c.no = p_conv FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN NULL; END IF;
  SELECT s.cold_seq INTO floor FROM sink_conversations s WHERE s.env = p_env AND s.conv = p_conv FOR UPDATE;
  SELECT min(l.message) INTO unconfirmed FROM sink_log l WHERE l.env = p_env AND l.conv = p_conv;
  FOR m IN
    -- A reaction is a change too: due_at is after its event, which refers to the message. So is a pin.
    WITH pinning AS MATERIALIZED (
      SELECT e.message, max(e.created_at) AS at FROM events e
      WHERE pinned AND e.conv = p_conv AND e.env = p_env AND e.type = 'message.pinned' GROUP BY e.message
    )
    SELECT seq, id, greatest(created_at, edited_at, deleted_at, t.due_at, p.at) AS changed, coalesce(seq >= unconfirmed, false) OR coalesce(t.waiting, false) OR EXISTS (
      SELECT 1 FROM sink_refused r WHERE r.env = p_env AND r.conv = p_conv AND r.message = x.seq) AS missing
    FROM messages x LEFT JOIN LATERAL (
      SELECT * FROM message_reactions WHERE reacted AND conv = x.conv AND message = x.seq AND env = x.env LIMIT 1
    ) t ON true LEFT JOIN pinning p ON p.message = x.seq WHERE x.env = p_env AND x.conv = p_conv AND x.seq > floor ORDER BY x.seq LIMIT p_limit
  LOOP
    IF m.id IS NOT NULL THEN
      IF reacted AND NOT m.missing AND m.changed < p_before AND m.seq IS DISTINCT FROM latest THEN
        PERFORM 1 FROM messages x WHERE x.env = p_env AND x.conv = p_conv AND x.seq = m.seq FOR NO KEY UPDATE SKIP LOCKED;
        m.missing := NOT FOUND;
        SELECT t.* INTO shown FROM message_reactions t WHERE t.conv = p_conv AND t.message = m.seq AND t.env = p_env FOR NO KEY UPDATE SKIP LOCKED;
        m.missing := m.missing OR CASE WHEN FOUND THEN shown.waiting ELSE EXISTS (
          SELECT 1 FROM message_reactions t WHERE t.conv = p_conv AND t.message = m.seq AND t.env = p_env) END;
      END IF;
      IF m.changed >= p_before OR m.missing OR m.seq = latest THEN
        -- The latest message leaves when there is a later one, which then says when to look again. The confirmation of a
        -- missing one says so too.
        stopped := CASE WHEN m.seq = latest THEN NULL ELSE greatest(m.changed, CASE WHEN m.missing THEN clock_timestamp() END) END;
        EXIT;
      END IF;
      going := going || m.seq;
    END IF;
    looked := looked + 1;
    floor := m.seq;
  END LOOP;
  UPDATE messages SET id = NULL, text = NULL, reply_to = NULL, metadata = NULL, attachments = NULL, version = 1, created_at = NULL, edited_at = NULL
    -- The stub of a hard-deleted one keeps its id: another database of the customer's may still have the message, and is
    -- told when it is used again.
    WHERE env = p_env AND conv = p_conv AND seq = ANY (going) AND NOT hard;
  UPDATE sink_conversations SET cold_seq = floor, oldest_at = CASE WHEN looked = p_limit THEN oldest_at ELSE stopped END
    WHERE env = p_env AND conv = p_conv;
  RETURN looked;
END $$;
