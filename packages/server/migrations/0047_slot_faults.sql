-- runs beside earlier versions
-- Databases of customers that stopped the process that reads what they send, and slots that are set aside (docs/storage.md).
CREATE TABLE slot_faults (
  env int NOT NULL REFERENCES environments,
  slot text NOT NULL CHECK (slot IN ('a', 'b')),
  faulted_at timestamptz(3),  -- when it last did
  aside_until timestamptz(3), -- infinity: set aside by the operator
  PRIMARY KEY (env, slot)
);
