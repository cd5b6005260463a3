-- Calls. What a call and its participants may do is in features/calls/call-state.ts and participant-state.ts.
CREATE TABLE calls (
  env int NOT NULL,
  no bigint GENERATED ALWAYS AS IDENTITY,
  id text COLLATE "C" NOT NULL,
  conv bigint NOT NULL,
  kind text NOT NULL CHECK (kind IN ('audio', 'video')),
  status text NOT NULL CHECK (status IN ('ringing', 'active', 'ended')),
  created_by bigint NOT NULL,
  end_reason text,
  metadata text,
  created_at timestamptz(3) NOT NULL,
  answered_at timestamptz(3),
  ended_at timestamptz(3),
  node text,                     -- the media node that hosts it
  epoch int NOT NULL DEFAULT 1,  -- how often it was given to a node: media of an earlier one is void
  unhosted_since timestamptz(3), -- its node is gone and there is no other
  PRIMARY KEY (no, env),
  UNIQUE (env, id)
);
CREATE UNIQUE INDEX calls_live ON calls (env, conv) WHERE status <> 'ended';
CREATE INDEX calls_live_env ON calls (env, no) WHERE status <> 'ended';
CREATE INDEX calls_node ON calls (node) WHERE status <> 'ended';
CREATE INDEX calls_conv ON calls (env, conv, no);
CREATE INDEX calls_env ON calls (env, no);
CREATE INDEX calls_created ON calls (env, created_at);

CREATE TABLE call_participants (
  env int NOT NULL,
  call bigint NOT NULL,
  usr bigint NOT NULL,
  state text NOT NULL CHECK (state IN ('ringing', 'joining', 'joined', 'left', 'declined', 'missed', 'busy')),
  invited_at timestamptz(3) NOT NULL,
  joined_at timestamptz(3),       -- when media first connected
  left_at timestamptz(3),
  stay_from timestamptz(3),       -- since when it is connected now
  seconds int NOT NULL DEFAULT 0, -- connected in earlier stays
  device text,                    -- given out by the last join; the only one that may open media
  session text COLLATE "C",       -- the socket that opened it
  gone_at timestamptz(3),         -- since when that socket is gone
  pushed boolean NOT NULL DEFAULT false, -- was told by push that it rings
  PRIMARY KEY (call, usr, env)
) WITH (fillfactor = 80);
CREATE INDEX call_participants_user ON call_participants (env, usr, call);
CREATE INDEX call_participants_in ON call_participants (env, usr) WHERE state IN ('ringing', 'joining', 'joined');
CREATE INDEX call_participants_here ON call_participants (call) WHERE state IN ('joining', 'joined') AND gone_at IS NULL;

-- Processes that carry media. One whose lease is over is dead, and its calls go to another.
CREATE TABLE media_nodes (
  id text COLLATE "C" PRIMARY KEY,
  state text NOT NULL CHECK (state IN ('preparing', 'ready', 'draining', 'failed')),
  detail text NOT NULL DEFAULT '',
  load real NOT NULL DEFAULT 0,   -- 1: its workers have nothing left to give
  ready_at timestamptz(3),        -- when one that prepares expects to be ready
  rtp_capabilities jsonb,
  lease_until timestamptz(3) NOT NULL
);
