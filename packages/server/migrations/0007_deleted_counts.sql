-- Unread counts that a deletion does not rewrite. Until here a deletion took one off the read count of every member who had
-- read the message: 500 rows in a large group. From here on the counters count messages whether deleted or not, and what was
-- deleted is counted once for the conversation:
--
--   unread = conversations.message_count - members.read_count - members.own_unread - deleted messages above members.last_read_seq
--
-- message_count: messages ever; read_count: those with seq <= last_read_seq; own_unread: the member's own live ones above it.

-- What is counted here must not change meanwhile.
LOCK TABLE conversations, members, messages IN SHARE ROW EXCLUSIVE MODE;

-- Deleted messages: at level 0 each by its seq, at level k how many there are in each block of 256^k seqs. So those above any seq
-- are the sum of at most 255 rows a level (`deleted_above`), and a deletion writes one row a level.
CREATE TABLE deleted_counts (
  conv bigint NOT NULL,
  level int NOT NULL,
  slot bigint NOT NULL, -- seq >> (8 * level)
  n int NOT NULL,
  env int NOT NULL,
  PRIMARY KEY (conv, level, slot, env)
) WITH (fillfactor = 70);

-- Whoever has read up to it has no deleted message above the mark: nearly everybody.
ALTER TABLE conversations ADD COLUMN last_deleted_seq bigint NOT NULL DEFAULT 0;

INSERT INTO deleted_counts (conv, level, slot, n, env)
SELECT m.conv, l, m.seq >> (8 * l), count(*), m.env FROM messages m, generate_series(0, 3) l
WHERE m.deleted_at IS NOT NULL GROUP BY m.conv, m.env, l, m.seq >> (8 * l);

UPDATE conversations c SET message_count = c.message_count + d.n, last_deleted_seq = d.last
FROM (SELECT env, conv, count(*) AS n, max(seq) AS last FROM messages WHERE deleted_at IS NOT NULL GROUP BY 1, 2) d
WHERE c.env = d.env AND c.no = d.conv;

UPDATE members m SET read_count = m.read_count + d.n
FROM (
  SELECT b.env, b.conv, b.usr, count(*) AS n
  FROM messages s JOIN members b ON b.env = s.env AND b.conv = s.conv AND b.last_read_seq >= s.seq
  WHERE s.deleted_at IS NOT NULL GROUP BY 1, 2, 3
) d WHERE m.env = d.env AND m.conv = d.conv AND m.usr = d.usr;
