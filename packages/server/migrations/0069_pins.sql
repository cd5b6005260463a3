-- Messages that a conversation shows as pinned. At most 100 in a conversation: who pins holds its lock, and counts.
CREATE TABLE pins (
  env int NOT NULL,
  conv bigint NOT NULL,
  message bigint NOT NULL, -- its seq
  by bigint, -- null: the server
  at timestamptz(3) NOT NULL,
  PRIMARY KEY (conv, message, env)
);
-- Of a voice note, as its uploader gave them.
ALTER TABLE attachments ADD COLUMN duration_ms int, ADD COLUMN waveform text;
