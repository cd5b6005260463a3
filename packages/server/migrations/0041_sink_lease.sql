-- When the sink's lease was last taken from a process that had not let go (features/storage/lease.ts).
ALTER TABLE storage ADD COLUMN taken_at timestamptz(3) NOT NULL DEFAULT '-infinity';
