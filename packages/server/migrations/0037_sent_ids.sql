-- The clientMsgIds that were used (SPEC 1, Idempotency 4). A partition holds a day (UTC), so that what is past its 48 hours goes by dropping
-- a table: there is a row for each message, and removing them one by one would cost as much as writing them. `keep_sent_ids`
-- (src/log/sql/sent_ids.sql) makes and drops the days; what falls into none goes to sent_ids_other and is removed row by row.
--
-- The key is not unique, since no key can be over several days. It need not be: whoever adds a row holds the conversation's lock, and has
-- looked under it. `dedup`, which it replaces, is asked too until what it holds is past its time; nothing is added to it any more.
CREATE TABLE sent_ids (
  env int NOT NULL,
  conv bigint NOT NULL,
  sender bigint NOT NULL, -- 0: the system
  client_msg_id text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  created_at timestamptz(3) NOT NULL
) PARTITION BY RANGE (created_at);
CREATE INDEX sent_ids_key ON sent_ids (conv, sender, client_msg_id, env);
CREATE TABLE sent_ids_other PARTITION OF sent_ids DEFAULT;
CREATE INDEX sent_ids_other_created ON sent_ids_other (created_at);
DO $$
DECLARE
  day date;
BEGIN
  FOR day IN SELECT (now() AT TIME ZONE 'UTC')::date + i FROM generate_series(0, 1) i LOOP
    EXECUTE format('CREATE TABLE %I PARTITION OF sent_ids FOR VALUES FROM (%L) TO (%L)',
      'sent_ids_' || to_char(day, 'YYYYMMDD'), day::text || ' 00:00:00+00', (day + 1)::text || ' 00:00:00+00');
  END LOOP;
END $$;
