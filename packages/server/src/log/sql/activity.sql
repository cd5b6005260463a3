-- Activity is stored in steps of 10 s. The members of a conversation have it too, so that a user's newest
-- conversations are found by index. It is renewed at most once a step.
CREATE OR REPLACE FUNCTION activity_step(t timestamptz) RETURNS int LANGUAGE sql STABLE AS
  $$ SELECT (extract(epoch FROM t) / 10)::int $$;

CREATE OR REPLACE FUNCTION renew_members(p_env int, p_conv bigint, p_step int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE members m SET last_activity_step = p_step WHERE m.conv = p_conv AND m.env = p_env;
END $$;

-- Renews the activity step of conversations (rows already locked) and their members.
CREATE OR REPLACE FUNCTION renew_activity(p_env int[], p_conv bigint[], p_step int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE conversations c SET last_activity_step = p_step
    FROM unnest(p_env, p_conv) u(env, conv) WHERE c.env = u.env AND c.no = u.conv;
  UPDATE members m SET last_activity_step = p_step
    FROM unnest(p_env, p_conv) u(env, conv) WHERE m.env = u.env AND m.conv = u.conv;
END $$;

-- When the conversation was last active, as of a moment in the past, by the clock of activity.
CREATE OR REPLACE FUNCTION activity_as_of(p_env int, p_conv bigint, p_at timestamptz) RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT greatest(
    (SELECT coalesce(m.active_at, m.created_at) FROM messages m
      WHERE m.env = p_env AND m.conv = p_conv AND coalesce(m.active_at, m.created_at) <= p_at ORDER BY m.seq DESC LIMIT 1),
    (SELECT coalesce(e.active_at, e.created_at) FROM events e
      WHERE e.env = p_env AND e.conv = p_conv AND coalesce(e.active_at, e.created_at) <= p_at ORDER BY e.seq DESC LIMIT 1)
  )
$$;
