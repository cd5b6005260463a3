-- runs beside earlier versions
-- How many messages the customer's database no longer had when history came back to us. Their rows stay here, without content.
ALTER TABLE storage ADD COLUMN missing bigint NOT NULL DEFAULT 0;

-- The slots whose databases an erasure has not reached. It is done when none of them is configured.
ALTER TABLE sink_erasures ADD COLUMN slots text[] NOT NULL DEFAULT '{a,b}';

-- Of a slot that is not in use: when erasures are tried there again, how often they have failed, and why.
ALTER TABLE storage_slots ADD COLUMN erase_due_at timestamptz(3) NOT NULL DEFAULT '-infinity',
  ADD COLUMN erase_failures int NOT NULL DEFAULT 0, ADD COLUMN erase_error text;
