-- runs beside earlier versions
-- An organization that its owner deleted. Nobody belongs to it any more; the row stays for the audit, without its name.
ALTER TABLE organizations ADD COLUMN deleted_at timestamptz(3);

-- Its environments end with it: they are suspended and without keys at once, and their rows are removed in the
-- background (features/tenancy/ending.ts). `removing_until` is the lease of the process that does so; `removed_at` is
-- set when nothing is left. The row stays for the audit.
ALTER TABLE environments
  ADD COLUMN ended_at timestamptz(3),
  ADD COLUMN removing_until timestamptz(3),
  ADD COLUMN removed_at timestamptz(3);
