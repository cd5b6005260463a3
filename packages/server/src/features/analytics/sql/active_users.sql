CREATE OR REPLACE FUNCTION active_in_month(p_env int, p_month timestamptz, p_usr bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN coalesce((SELECT get_bit(a.bits, (p_usr & 8191)::int) = 1 FROM active_users a
    WHERE a.env = p_env AND a.step = 2 AND a.at = p_month AND a.chunk = (p_usr >> 13)::int), false);
END $$;

-- Locks the month until the transaction ends, and returns how many users are counted in it, and who of these is not.
CREATE OR REPLACE FUNCTION month_room(p_env int, p_usr bigint[], OUT counted bigint, OUT fresh bigint[]) LANGUAGE plpgsql AS $$
DECLARE
  month timestamptz := date_trunc('month', now(), 'UTC');
BEGIN
  INSERT INTO active_months (env, at, n) VALUES (p_env, month, 0) ON CONFLICT DO NOTHING;
  SELECT m.n INTO counted FROM active_months m WHERE m.env = p_env AND m.at = month FOR NO KEY UPDATE;
  fresh := ARRAY(SELECT DISTINCT u FROM unnest(p_usr) u WHERE NOT active_in_month(p_env, month, u));
END $$;

-- Whether a user may act in this month under the plan's ceiling: 'known' (the user is counted already, and is never
-- refused again), 'room' or 'full'. Unless the user is known, the month stays locked until the transaction ends, so
-- that nobody else is counted meanwhile.
CREATE OR REPLACE FUNCTION month_admits(p_env int, p_usr bigint, p_limit bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  month record;
BEGIN
  IF active_in_month(p_env, date_trunc('month', now(), 'UTC'), p_usr) THEN RETURN 'known'; END IF;
  SELECT r.counted, r.fresh INTO month FROM month_room(p_env, ARRAY[p_usr]) r;
  RETURN CASE WHEN month.fresh = '{}' THEN 'known' WHEN month.counted < p_limit THEN 'room' ELSE 'full' END;
END $$;

-- Counts users who are not counted yet, in the transaction that found this out and has locked the month.
CREATE OR REPLACE FUNCTION count_all_in_month(p_env int, p_usr bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  month timestamptz := date_trunc('month', now(), 'UTC');
  part record;
  mask bit(8192);
  usr bigint;
BEGIN
  FOR part IN SELECT (u >> 13)::int AS chunk, array_agg(u) AS users FROM unnest(p_usr) u GROUP BY 1 ORDER BY 1 LOOP
    mask := repeat('0', 8192)::bit(8192);
    FOREACH usr IN ARRAY part.users LOOP mask := set_bit(mask, (usr & 8191)::int, 1); END LOOP;
    INSERT INTO active_users AS a (env, step, at, chunk, bits) VALUES (p_env, 2, month, part.chunk, mask)
      ON CONFLICT (env, step, at, chunk) DO UPDATE SET bits = a.bits | excluded.bits;
  END LOOP;
  UPDATE active_months m SET n = m.n + cardinality(p_usr) WHERE m.env = p_env AND m.at = month;
END $$;

-- Counts a user who had 'room', in the same transaction.
CREATE OR REPLACE FUNCTION count_in_month(p_env int, p_usr bigint) RETURNS void LANGUAGE sql AS $$
  SELECT count_all_in_month(p_env, ARRAY[p_usr]);
$$;

-- Users connected or joined a call: records those whom the plan's ceiling admits (null: no ceiling), and returns for each
-- whether it does. Environments are processed in order, so that two such batches cannot deadlock.
CREATE OR REPLACE FUNCTION note_connected(p_env int[], p_usr bigint[], p_limit bigint[]) RETURNS boolean[] LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  admitted boolean[] := array_fill(true, ARRAY[cardinality(p_env)]);
  i int;
  verdict text;
BEGIN
  FOR i IN SELECT k FROM generate_series(1, cardinality(p_env)) k WHERE p_limit[k] IS NOT NULL ORDER BY p_env[k], k LOOP
    verdict := month_admits(p_env[i], p_usr[i], p_limit[i]);
    IF verdict = 'room' THEN PERFORM count_in_month(p_env[i], p_usr[i]); END IF;
    admitted[i] := verdict <> 'full';
  END LOOP;
  INSERT INTO activity_notes (at, env, users)
    SELECT now(), p_env[k], array_agg(p_usr[k]) FROM generate_series(1, cardinality(p_env)) k WHERE admitted[k] GROUP BY p_env[k];
  RETURN admitted;
END $$;
