-- What users, servers and word lists reported. All reports of one target that are open together have the same head, and end
-- together. The snapshot is what a message said when it was reported, sealed as secrets are.
CREATE TABLE reports (
  env int NOT NULL,
  id text COLLATE "C" NOT NULL,
  head text COLLATE "C" NOT NULL, -- the id of the first of these reports
  reporter bigint NOT NULL, -- 0: a server; -1: a word list
  kind text NOT NULL, -- message, user or conversation
  target bigint NOT NULL, -- the user, or the conversation, also that of a message
  seq bigint NOT NULL, -- of the message; 0: none
  message_id text,
  version int NOT NULL, -- of the message; 0: none
  usr bigint, -- the user who was reported, or who wrote the message
  reason text NOT NULL,
  note text,
  snapshot bytea,
  status text NOT NULL, -- open, resolved or dismissed
  at timestamptz(3) NOT NULL,
  actions text, -- a JSON array
  resolution text, -- the note of whoever decided
  resolver text, -- who decided, in the dashboard
  resolved_at timestamptz(3),
  PRIMARY KEY (env, id)
);
CREATE INDEX reports_by_head ON reports (env, head);
CREATE INDEX reports_by_status ON reports (env, status, head);
CREATE INDEX reports_by_target ON reports (env, target, seq, kind);
CREATE INDEX reports_by_user ON reports (env, usr, head) WHERE usr IS NOT NULL;
CREATE INDEX reports_by_reporter ON reports (env, reporter);
CREATE INDEX reports_ended ON reports (resolved_at) WHERE resolved_at IS NOT NULL;
