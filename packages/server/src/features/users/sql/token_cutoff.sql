-- The cut-off of a revocation that happens now: tokens with an earlier iat are refused. It is the next full second by
-- the clock of those who sign tokens (`ahead`: by how many seconds a key's clock is ahead of ours), and always later
-- than the cut-off before, so that a token minted between two revocations is caught by the second.
CREATE OR REPLACE FUNCTION token_cutoff(p_env int, p_before timestamptz) RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
  SELECT greatest(
    to_timestamp(ceil(extract(epoch FROM clock_timestamp())) + coalesce(
      (SELECT max(k.ahead) FROM secret_keys k WHERE k.env = p_env AND k.ahead_at > now() - interval '1 day'), 0)),
    p_before + interval '1 second')
$$;
