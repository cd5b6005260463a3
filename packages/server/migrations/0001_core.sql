-- Tenancy. Rows of most tables have two names: `id`, which people see and the API uses, and `no`, a short number that only the
-- database uses. Other tables refer to `no`. Because a `no` is never given out twice, not even in another environment, primary
-- keys begin with it and end with `env`. (Keys that began with `env` misled the planner: it took any of them for a way to find a row.)
CREATE TABLE organizations (
  no int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  name text NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now()
);

CREATE TABLE accounts (
  no int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  email text COLLATE "C" NOT NULL UNIQUE,
  password_hash text NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now()
);

CREATE TABLE organization_accounts (
  org int NOT NULL REFERENCES organizations,
  account int NOT NULL REFERENCES accounts,
  role text NOT NULL CHECK (role IN ('owner', 'member')),
  PRIMARY KEY (org, account)
);

CREATE TABLE environments (
  no int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  org int NOT NULL REFERENCES organizations,
  name text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('production', 'development')),
  status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'suspended')),
  plan text NOT NULL DEFAULT 'free',
  settings jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz(3) NOT NULL DEFAULT now()
);

CREATE TABLE secret_keys (
  id text COLLATE "C" PRIMARY KEY,
  env int NOT NULL REFERENCES environments,
  name text NOT NULL DEFAULT '',
  secret bytea NOT NULL, -- sealed under the master key
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  revoked_at timestamptz(3)
);
CREATE INDEX secret_keys_env ON secret_keys (env);

-- One row: shows whether a process holds the master key that sealed this store.
CREATE TABLE master_key_check (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  sealed bytea NOT NULL
);

-- Users. Everything refers to a user by `no`, so erasure renames one row.
CREATE TABLE users (
  env int NOT NULL,
  no bigint GENERATED ALWAYS AS IDENTITY,
  id text COLLATE "C" NOT NULL,
  name text,
  image_url text,
  metadata text,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  deactivated_at timestamptz(3),
  tokens_from timestamptz(3), -- tokens with an earlier iat are refused
  erased_at timestamptz(3),
  erasing text, -- an erasure under way: anonymize or delete
  last_seen_at timestamptz(3),
  PRIMARY KEY (no, env),
  UNIQUE (env, id)
) WITH (fillfactor = 85);

CREATE INDEX users_erasing ON users (env, no) WHERE erasing IS NOT NULL;

-- Token cut-offs of erased ids, by keyed hash: old tokens do not bring a user back.
CREATE TABLE erased_ids (
  env int NOT NULL,
  subject bytea NOT NULL,
  tokens_from timestamptz(3) NOT NULL,
  PRIMARY KEY (env, subject)
);

-- Conversations and the log.
-- `act` is the activity in steps of 10 s. Members carry it too, renewed at most once a step, so that a
-- user's newest conversations are found by index without a write per member and message.
CREATE TABLE conversations (
  env int NOT NULL,
  no bigint GENERATED ALWAYS AS IDENTITY,
  id text COLLATE "C" NOT NULL,
  type text NOT NULL CHECK (type IN ('direct', 'group')),
  name text,
  metadata text,
  last_seq bigint NOT NULL DEFAULT 0,
  message_count bigint NOT NULL DEFAULT 0, -- live messages
  last_message_seq bigint,                 -- the latest live one
  last_activity_at timestamptz(3) NOT NULL,
  act int NOT NULL,
  created_at timestamptz(3) NOT NULL,
  deleted_at timestamptz(3),
  PRIMARY KEY (no, env),
  UNIQUE (id, env)
) WITH (fillfactor = 70);

-- unread = conversations.message_count - read_count - own_unread, whatever the number of messages:
-- read_count: live messages with seq <= last_read_seq; own_unread: own live messages above it.
CREATE TABLE members (
  env int NOT NULL,
  conv bigint NOT NULL,
  usr bigint NOT NULL,
  role text NOT NULL DEFAULT 'member' CHECK (role IN ('owner', 'member')),
  last_read_seq bigint NOT NULL DEFAULT 0,
  last_delivered_seq bigint NOT NULL DEFAULT 0,
  read_count bigint NOT NULL DEFAULT 0,
  own_unread bigint NOT NULL DEFAULT 0,
  muted boolean NOT NULL DEFAULT false,
  act int NOT NULL,      -- the conversation's activity step
  self_act int NOT NULL, -- the member's own (read, mute): counts for its sync
  self_at timestamptz(3) NOT NULL,
  PRIMARY KEY (conv, usr, env)
) WITH (fillfactor = 70);
CREATE INDEX members_by_activity ON members (usr, act DESC) INCLUDE (conv, env);
CREATE INDEX members_by_own_activity ON members (usr, self_act DESC) INCLUDE (conv, env);

CREATE TABLE departures (
  env int NOT NULL,
  usr bigint NOT NULL,
  conv bigint NOT NULL,
  at timestamptz(3) NOT NULL,
  PRIMARY KEY (usr, conv, env)
);
CREATE INDEX departures_at ON departures (usr, at);

-- A message row is its own message.new event. A hard-deleted one stays as an empty stub, so that the stream has no hole.
CREATE TABLE messages (
  env int NOT NULL,
  conv bigint NOT NULL,
  seq bigint NOT NULL,
  id text COLLATE "C" NOT NULL,
  sender bigint, -- null: the system
  text text,
  reply_to text COLLATE "C",
  metadata text,
  attachments text, -- JSON of the attachment objects
  version int NOT NULL DEFAULT 1,
  created_at timestamptz(3) NOT NULL,
  edited_at timestamptz(3),
  deleted_at timestamptz(3),
  hard boolean NOT NULL DEFAULT false,
  PRIMARY KEY (conv, seq, env),
  UNIQUE (id, env)
);

-- All other events. They refer to messages and hold no text.
CREATE TABLE events (
  env int NOT NULL,
  conv bigint NOT NULL,
  seq bigint NOT NULL,
  type text NOT NULL,
  message bigint,    -- seq of the message it is about
  users bigint[],
  actor bigint,      -- null: the server
  data text,
  created_at timestamptz(3) NOT NULL,
  PRIMARY KEY (conv, seq, env)
);
CREATE INDEX events_created ON events USING brin (created_at);

CREATE TABLE dedup (
  env int NOT NULL,
  conv bigint NOT NULL,
  sender bigint NOT NULL, -- 0: the system (a null would slip past the key)
  client_msg_id text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  created_at timestamptz(3) NOT NULL,
  PRIMARY KEY (conv, sender, client_msg_id, env)
);
CREATE INDEX dedup_created ON dedup USING brin (created_at);

CREATE TABLE idempotency (
  env int NOT NULL,
  key text COLLATE "C" NOT NULL,
  route bytea NOT NULL,       -- hash of method, path and query
  fingerprint bytea NOT NULL, -- hash of caller and body
  status int,
  body bytea,                 -- sealed under the master key
  subjects text[],            -- user and message ids inside the body, for erasure and hard deletes
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (env, key, route)
);
CREATE INDEX idempotency_created ON idempotency USING brin (created_at);
CREATE INDEX idempotency_subjects ON idempotency USING gin (subjects);

CREATE FUNCTION activity_step(t timestamptz) RETURNS int LANGUAGE sql STABLE AS
  $$ SELECT (extract(epoch FROM t) / 10)::int $$;

-- Renews the activity step of conversations (rows already locked) and their members.
CREATE FUNCTION renew_activity(p_env int[], p_conv bigint[], p_step int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE conversations c SET act = p_step
    FROM unnest(p_env, p_conv) u(env, conv) WHERE c.env = u.env AND c.no = u.conv;
  UPDATE members m SET act = p_step
    FROM unnest(p_env, p_conv) u(env, conv) WHERE m.env = u.env AND m.conv = u.conv;
END $$;

-- What each message of a batch attaches, as JSON, or why it may not: only ready attachments of its own conversation by
-- its sender (or by the server, in a server's send), and each only once. A second message that names one waits ('again')
-- for what becomes of the first. The rows stay locked.
CREATE FUNCTION message_files(p_env int[], p_conv text[], p_sender bigint[], p_own boolean[], p_files text[],
  OUT files text[], OUT verdicts text[]) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM unnest(p_env, p_conv, p_files) u(env, cid, files)
    CROSS JOIN LATERAL json_array_elements_text(u.files::json) f(id)
    JOIN conversations c ON c.env = u.env AND c.id = u.cid
    JOIN attachments a ON a.env = u.env AND a.id = f.id AND a.conv = c.no AND a.message IS NULL
    ORDER BY a.env, a.id FOR UPDATE OF a;
  SELECT array_agg(m.files ORDER BY m.ord), array_agg(m.verdict ORDER BY m.ord) INTO files, verdicts FROM (
    SELECT x.ord,
      CASE WHEN bool_and(x.wanted IS NULL) THEN NULL
        WHEN count(x.wanted) > count(x.id) THEN 'attachment_not_ready'
        WHEN max(x.turn) > 1 THEN 'again' END AS verdict,
      json_agg(json_strip_nulls(json_build_object('id', x.id, 'name', x.name, 'size', x.size, 'mimeType', x.mime_type,
        'width', x.width, 'height', x.height, 'status', 'ready')) ORDER BY x.pos) FILTER (WHERE x.id IS NOT NULL)::text AS files
    FROM (
      SELECT u.ord, f.id AS wanted, f.pos, a.id, a.name, a.size, a.mime_type, a.width, a.height,
        dense_rank() OVER (PARTITION BY u.env, f.id ORDER BY u.ord) AS turn
      FROM unnest(p_env, p_conv, p_sender, p_own, p_files) WITH ORDINALITY u(env, cid, sender, own, files, ord)
      LEFT JOIN LATERAL json_array_elements_text(u.files::json) WITH ORDINALITY f(id, pos) ON true
      LEFT JOIN conversations c ON c.env = u.env AND c.id = u.cid AND f.id IS NOT NULL
      LEFT JOIN attachments a ON a.env = u.env AND a.id = f.id AND a.conv = c.no AND a.ready_at IS NOT NULL
        AND a.message IS NULL AND (a.uploader = u.sender OR a.uploader IS NULL AND NOT u.own)
    ) x GROUP BY x.ord
  ) m;
END $$;

-- The group commit: appends many messages at once, each with the next seq of its conversation.
-- Conversations are locked in order first; the second statement then sees all that was committed before,
-- so deduplication and membership are exact across processes. A clientMsgId comes at most once in a batch.
CREATE FUNCTION append_messages(
  p_env int[], p_conv text[], p_sender bigint[], p_own boolean[], p_cmid text[], p_id text[],
  p_text text[], p_reply text[], p_meta text[], -- of these two and the next, null where no message has any
  p_files text[] -- each a JSON array of attachment ids, or null
) RETURNS TABLE (ord int, status text, conv bigint, seq bigint, at timestamptz, attachments text) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan -- planning costs more than running
SET enable_seqscan = off -- a plan made while the tables were small must not read them whole when they have grown
AS $$
#variable_conflict use_column
DECLARE
  ts timestamptz(3);
  stale_env int[];
  stale_conv bigint[];
  files text[];
  file_verdicts text[];
  verdicts text[];
  convs bigint[];
  seqs bigint[];   -- the new seq, or that of the original
  counts bigint[]; -- live messages up to and with the new one
BEGIN
  -- Materialized, or the condition on `act` would move below the lock and leave the other rows unlocked.
  WITH locked AS MATERIALIZED (
    SELECT c.env, c.no, c.act FROM (SELECT DISTINCT e, i FROM unnest(p_env, p_conv) AS t(e, i)) w
      JOIN conversations c ON c.env = w.e AND c.id = w.i
      ORDER BY c.env, c.no FOR NO KEY UPDATE OF c
  ) SELECT array_agg(l.env), array_agg(l.no) INTO stale_env, stale_conv
    FROM locked l WHERE l.act < activity_step(clock_timestamp());
  ts := clock_timestamp();
  IF stale_conv IS NOT NULL THEN
    PERFORM renew_activity(stale_env, stale_conv, activity_step(ts));
  END IF;
  IF p_files IS NOT NULL THEN
    SELECT f.files, f.verdicts INTO files, file_verdicts FROM message_files(p_env, p_conv, p_sender, p_own, p_files) f;
  END IF;

  -- Subqueries and not joins: each is one look into one index, whatever the planner knows of the tables.
  SELECT array_agg(v.verdict ORDER BY v.ord), array_agg(v.cno ORDER BY v.ord),
    array_agg(coalesce(v.dup, v.last_seq + v.rn) ORDER BY v.ord), array_agg(v.message_count + v.rn ORDER BY v.ord)
  INTO verdicts, convs, seqs, counts FROM (
    SELECT i.*, count(*) FILTER (WHERE i.verdict = 'ok') OVER (PARTITION BY i.cno ORDER BY i.ord) AS rn FROM (
      SELECT u.ord, c.no AS cno, c.last_seq, c.message_count, d.dup,
        CASE
          WHEN c.no IS NULL THEN 'not_found'
          WHEN d.dup IS NOT NULL THEN 'duplicate'
          WHEN u.sender IS NOT NULL AND (
            (SELECT m.usr FROM members m WHERE m.env = u.env AND m.conv = c.no AND m.usr = u.sender) IS NULL
            -- a send may outlive its user by a moment
            OR (SELECT x.no FROM users x WHERE x.env + 0 = u.env AND x.no = u.sender AND x.erased_at IS NULL) IS NULL) THEN 'not_member'
          WHEN u.reply IS NOT NULL AND c.no IS DISTINCT FROM
            (SELECT r.conv FROM messages r WHERE r.env = u.env AND r.id = u.reply AND NOT r.hard) THEN 'reply_not_found'
          ELSE coalesce(file_verdicts[u.ord], 'ok')
        END AS verdict
      FROM unnest(p_env, p_conv, p_sender, p_cmid, p_reply) WITH ORDINALITY AS u(env, cid, sender, cmid, reply, ord)
      LEFT JOIN LATERAL (
        SELECT no, last_seq, message_count FROM conversations WHERE env = u.env AND id = u.cid AND deleted_at IS NULL LIMIT 1
      ) c ON true
      CROSS JOIN LATERAL (
        SELECT (SELECT x.seq FROM dedup x WHERE x.env = u.env AND x.conv = c.no AND x.sender = coalesce(u.sender, 0)
          AND x.client_msg_id = u.cmid AND x.created_at > ts - interval '48 hours') AS dup OFFSET 0
      ) d
    ) i
  ) v;

  INSERT INTO messages (env, conv, seq, id, sender, text, reply_to, metadata, attachments, created_at)
  SELECT u.env, u.conv, u.seq, u.id, u.sender, u.text, u.reply, u.meta, u.files, ts
  FROM unnest(p_env, convs, seqs, p_id, p_sender, p_text, p_reply, p_meta, files, verdicts)
    AS u(env, conv, seq, id, sender, text, reply, meta, files, verdict) WHERE u.verdict = 'ok';

  INSERT INTO dedup (env, conv, sender, client_msg_id, seq, created_at)
  SELECT u.env, u.conv, coalesce(u.sender, 0), u.cmid, u.seq, ts
  FROM unnest(p_env, convs, p_sender, p_cmid, seqs, verdicts) AS u(env, conv, sender, cmid, seq, verdict)
  WHERE u.verdict = 'ok' AND u.cmid IS NOT NULL
  ON CONFLICT (env, conv, sender, client_msg_id) DO UPDATE SET seq = excluded.seq, created_at = excluded.created_at;

  UPDATE conversations c SET last_seq = k.seq, message_count = k.count, last_message_seq = k.seq, last_activity_at = ts
  FROM (
    SELECT u.env, u.conv, max(u.seq) AS seq, max(u.count) AS count
    FROM unnest(p_env, convs, seqs, counts, verdicts) AS u(env, conv, seq, count, verdict) WHERE u.verdict = 'ok' GROUP BY 1, 2
  ) k WHERE c.env = k.env AND c.no = k.conv;

  -- A user's own send reads everything up to it; a send on its behalf does not, and is not unread for it.
  UPDATE members m SET last_read_seq = k.seq, read_count = k.count, own_unread = 0
  FROM (
    SELECT u.env, u.conv, u.sender, max(u.seq) AS seq, max(u.count) AS count
    FROM unnest(p_env, convs, p_sender, p_own, seqs, counts, verdicts) AS u(env, conv, sender, own, seq, count, verdict)
    WHERE u.verdict = 'ok' AND u.own GROUP BY 1, 2, 3
  ) k WHERE m.env = k.env AND m.conv = k.conv AND m.usr = k.sender;
  IF false = ANY (p_own) THEN
    UPDATE members m SET own_unread = m.own_unread + k.n
    FROM (
      SELECT u.env, u.conv, u.sender, array_agg(u.seq) AS seqs
      FROM unnest(p_env, convs, p_sender, p_own, seqs, verdicts) AS u(env, conv, sender, own, seq, verdict)
      WHERE u.verdict = 'ok' AND NOT u.own AND u.sender IS NOT NULL GROUP BY 1, 2, 3
    ) g JOIN LATERAL (
      SELECT b.env, b.conv, b.usr, (SELECT count(*) FROM unnest(g.seqs) s WHERE s > b.last_read_seq) AS n
      FROM members b WHERE b.env = g.env AND b.conv = g.conv AND b.usr = g.sender
    ) k ON true WHERE m.env = k.env AND m.conv = k.conv AND m.usr = k.usr;
  END IF;

  -- The event's id is the message's: one message, one message.created.
  INSERT INTO outbox (id, env, type, conv, seq, message, actor, created_at, due_at)
  SELECT 'evt_' || substr(u.id, 5), u.env, 'message.created', u.conv, u.seq, u.seq, u.sender, ts, ts
  FROM unnest(p_env, p_id, convs, seqs, p_sender, verdicts) AS u(env, id, conv, seq, sender, verdict)
    JOIN environments e ON e.no = u.env AND e.listeners <> 0 WHERE u.verdict = 'ok';

  IF p_files IS NOT NULL THEN
    UPDATE attachments a SET message = m.seq
    FROM unnest(p_env, p_id, p_files) u(env, id, files)
      JOIN messages m ON m.env = u.env AND m.id = u.id
      CROSS JOIN LATERAL json_array_elements_text(u.files::json) f(id)
    WHERE a.env = u.env AND a.id = f.id;
  END IF;

  RETURN QUERY SELECT u.ord::int, u.verdict, u.conv, u.seq, ts::timestamptz, u.files
  FROM unnest(verdicts, convs, seqs, files) WITH ORDINALITY AS u(verdict, conv, seq, files, ord);
END $$;

-- Moves read marks forward, many at once. Counting happens under the conversation's lock, or a delete could slip between.
CREATE FUNCTION mark_read(p_env int[], p_conv text[], p_usr bigint[], p_seq bigint[])
RETURNS TABLE (ord int, status text, conv bigint, read_seq bigint, unread bigint, changed boolean) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  ts timestamptz(3);
BEGIN
  PERFORM 1 FROM conversations c
    JOIN (SELECT DISTINCT e, i FROM unnest(p_env, p_conv) AS t(e, i)) w ON c.env = w.e AND c.id = w.i
    ORDER BY c.env, c.no FOR NO KEY UPDATE OF c;
  ts := clock_timestamp();
  RETURN QUERY
  WITH item AS MATERIALIZED (
    SELECT u.ord, u.env, u.usr, c.no AS cno, c.message_count, m.last_read_seq, m.read_count, m.own_unread,
      CASE WHEN c.no IS NULL THEN 'not_found' WHEN m.usr IS NULL THEN 'not_member' ELSE 'ok' END AS verdict,
      greatest(m.last_read_seq, max(least(u.seq, c.last_seq)) OVER (PARTITION BY u.env, c.no, u.usr)) AS target,
      c.last_message_seq
    FROM unnest(p_env, p_conv, p_usr, p_seq) WITH ORDINALITY AS u(env, cid, usr, seq, ord)
    LEFT JOIN LATERAL (
      SELECT * FROM conversations WHERE env = u.env AND id = u.cid AND deleted_at IS NULL LIMIT 1
    ) c ON true
    LEFT JOIN LATERAL (
      SELECT * FROM members WHERE env = u.env AND conv = c.no AND usr = u.usr LIMIT 1
    ) m ON true
  ), counted AS MATERIALIZED (
    SELECT DISTINCT ON (i.env, i.cno, i.usr) i.env, i.cno, i.usr, i.target, i.last_read_seq,
      CASE WHEN i.target >= coalesce(i.last_message_seq, 0) THEN i.message_count
        ELSE i.read_count + coalesce(x.live, 0) END AS read_count,
      CASE WHEN i.target >= coalesce(i.last_message_seq, 0) THEN 0
        ELSE i.own_unread - coalesce(x.own, 0) END AS own_unread
    FROM item i LEFT JOIN LATERAL (
      SELECT count(*) AS live, count(*) FILTER (WHERE s.sender = i.usr) AS own FROM messages s
      WHERE i.target > i.last_read_seq AND i.target < i.last_message_seq
        AND s.env = i.env AND s.conv = i.cno AND s.seq > i.last_read_seq AND s.seq <= i.target AND s.deleted_at IS NULL
    ) x ON true
    WHERE i.verdict = 'ok'
  ), moved AS (
    UPDATE members m SET last_read_seq = k.target, read_count = k.read_count, own_unread = k.own_unread,
      self_at = ts, self_act = activity_step(ts)
    FROM counted k WHERE k.target > k.last_read_seq AND m.env = k.env AND m.conv = k.cno AND m.usr = k.usr
  ), noted AS (
    -- SPEC 6, message.read: one per member and 10 s, with the last value; the row outlives a crash.
    INSERT INTO outbox (id, env, type, key, conv, seq, users, created_at, due_at)
    SELECT make_id('evt_', ts), k.env, 'message.read', k.cno || ' ' || k.usr, k.cno, k.target, ARRAY[k.usr], ts, ts + interval '10 seconds'
    FROM counted k JOIN environments e ON e.no = k.env AND e.listeners & 4 <> 0 WHERE k.target > k.last_read_seq
    ON CONFLICT (env, key) WHERE key IS NOT NULL DO UPDATE SET seq = excluded.seq, created_at = excluded.created_at
  )
  SELECT i.ord::int, i.verdict, i.cno, k.target,
    i.message_count - k.read_count - k.own_unread,
    k.target > k.last_read_seq
  FROM item i LEFT JOIN counted k ON k.env = i.env AND k.cno = i.cno AND k.usr = i.usr;
END $$;

-- When the conversation was last active as of a moment in the past.
CREATE FUNCTION activity_as_of(p_env int, p_conv bigint, p_at timestamptz) RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT greatest(
    (SELECT m.created_at FROM messages m WHERE m.env = p_env AND m.conv = p_conv AND m.created_at <= p_at ORDER BY m.seq DESC LIMIT 1),
    (SELECT e.created_at FROM events e WHERE e.env = p_env AND e.conv = p_conv AND e.created_at <= p_at ORDER BY e.seq DESC LIMIT 1)
  )
$$;

-- Moves delivery marks forward, many at once. A mark lost in a crash comes again with the next one, so it need not wait for the disk.
CREATE FUNCTION mark_delivered(p_env int[], p_conv text[], p_usr bigint[], p_seq bigint[])
RETURNS TABLE (ord int, conv bigint, delivered_seq bigint) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
  SET LOCAL synchronous_commit = off;
  RETURN QUERY
  WITH target AS MATERIALIZED (
    SELECT u.env, u.usr, c.no AS cno, max(least(u.seq, c.last_seq)) AS seq, min(u.ord) AS ord
    FROM unnest(p_env, p_conv, p_usr, p_seq) WITH ORDINALITY AS u(env, cid, usr, seq, ord)
    JOIN conversations c ON c.env = u.env AND c.id = u.cid AND c.deleted_at IS NULL
    GROUP BY 1, 2, 3
  ), locked AS MATERIALIZED (
    SELECT m.env, m.conv, m.usr, t.seq, t.ord FROM members m
    JOIN target t ON m.env = t.env AND m.conv = t.cno AND m.usr = t.usr
    WHERE m.last_delivered_seq < t.seq ORDER BY m.env, m.conv, m.usr FOR NO KEY UPDATE OF m
  ), moved AS (
    UPDATE members m SET last_delivered_seq = l.seq FROM locked l
    WHERE m.env = l.env AND m.conv = l.conv AND m.usr = l.usr AND m.last_delivered_seq < l.seq
    RETURNING l.ord, m.conv, m.last_delivered_seq
  ) SELECT moved.ord::int, moved.conv, moved.last_delivered_seq FROM moved;
END $$;
