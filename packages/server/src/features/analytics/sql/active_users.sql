CREATE OR REPLACE FUNCTION active_in_month(p_env int, p_month timestamptz, p_usr bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN coalesce((SELECT get_bit(a.bits, (p_usr & 8191)::int) = 1 FROM active_users a
    WHERE a.env = p_env AND a.step = 2 AND a.at = p_month AND a.chunk = (p_usr >> 13)::int), false);
END $$;

-- Whether a user may act in this month under the plan's ceiling: 'known' (the user is counted already, and is never
-- refused again), 'room' or 'full'.
CREATE OR REPLACE FUNCTION month_verdict(p_env int, p_usr bigint, p_limit bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  month timestamptz := date_trunc('month', now(), 'UTC');
BEGIN
  IF active_in_month(p_env, month, p_usr) THEN RETURN 'known'; END IF;
  RETURN CASE WHEN coalesce((SELECT m.n FROM active_months m WHERE m.env = p_env AND m.at = month), 0) < p_limit THEN 'room' ELSE 'full' END;
END $$;

-- Locks this month until the transaction ends: nobody else is counted meanwhile.
CREATE OR REPLACE FUNCTION lock_month(p_env int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  month timestamptz := date_trunc('month', now(), 'UTC');
BEGIN
  INSERT INTO active_months (env, at, n) VALUES (p_env, month, 0) ON CONFLICT DO NOTHING;
  PERFORM 1 FROM active_months m WHERE m.env = p_env AND m.at = month FOR NO KEY UPDATE;
END $$;

-- Counts a user who acted, unless it is counted already.
CREATE OR REPLACE FUNCTION count_in_month(p_env int, p_usr bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  month timestamptz := date_trunc('month', now(), 'UTC');
BEGIN
  PERFORM lock_month(p_env);
  IF active_in_month(p_env, month, p_usr) THEN RETURN; END IF;
  INSERT INTO active_users AS a (env, step, at, chunk, bits)
    VALUES (p_env, 2, month, (p_usr >> 13)::int, set_bit(repeat('0', 8192)::bit(8192), (p_usr & 8191)::int, 1))
    ON CONFLICT (env, step, at, chunk) DO UPDATE SET bits = a.bits | excluded.bits;
  UPDATE active_months m SET n = m.n + 1 WHERE m.env = p_env AND m.at = month;
END $$;

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
    verdict := month_verdict(p_env[i], p_usr[i], p_limit[i]);
    CONTINUE WHEN verdict = 'known';
    PERFORM lock_month(p_env[i]);
    verdict := month_verdict(p_env[i], p_usr[i], p_limit[i]);
    IF verdict = 'room' THEN PERFORM count_in_month(p_env[i], p_usr[i]); END IF;
    admitted[i] := verdict <> 'full';
  END LOOP;
  INSERT INTO activity_notes (at, env, users)
    SELECT now(), p_env[k], array_agg(p_usr[k]) FROM generate_series(1, cardinality(p_env)) k WHERE admitted[k] GROUP BY p_env[k];
  RETURN admitted;
END $$;
