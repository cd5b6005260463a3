-- runs beside earlier versions
-- Erasures are done by the sink, which goes by this table: a slot that was made by a migration of the database alone had no row in it.
INSERT INTO storage (env) SELECT DISTINCT env FROM storage_slots ON CONFLICT DO NOTHING;
