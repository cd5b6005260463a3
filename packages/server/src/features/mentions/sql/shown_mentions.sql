-- The mentions of a message's extras as callers see them; null if it has none.
CREATE OR REPLACE FUNCTION shown_mentions(p_env int, p_extras text) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT json_agg(json_strip_nulls(json_build_object('type', CASE jsonb_typeof(e.mention -> 0) WHEN 'number' THEN 'user' ELSE e.mention ->> 0 END,
    'userId', u.id, 'offset', (e.mention ->> 1)::int, 'length', (e.mention ->> 2)::int)) ORDER BY e.ord)
  FROM jsonb_array_elements(p_extras::jsonb -> 'mentions') WITH ORDINALITY e(mention, ord)
  LEFT JOIN LATERAL (
    SELECT id FROM users WHERE no = CASE jsonb_typeof(e.mention -> 0) WHEN 'number' THEN (e.mention ->> 0)::bigint END AND env = p_env LIMIT 1
  ) u ON true
$$;
