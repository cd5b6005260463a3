-- An id in the usual form: the time as in a ULID, then 16 random characters (hexadecimal here, because these are
-- cheap in SQL).
CREATE OR REPLACE FUNCTION ulid_time(at timestamptz) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + ((floor(extract(epoch FROM at) * 1000)::bigint >> (45 - 5 * i)) & 31)::int, 1), '' ORDER BY i)
  FROM generate_series(0, 9) i
$$;
CREATE OR REPLACE FUNCTION make_id(prefix text, at timestamptz) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT prefix || ulid_time(at) || right(replace(gen_random_uuid()::text, '-', ''), 16)
$$;
