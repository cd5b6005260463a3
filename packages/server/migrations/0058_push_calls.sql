-- runs beside earlier versions
-- Pushes of calls. An iOS device has a second token for them (PushKit).
ALTER TABLE push_devices ADD COLUMN voip_token text;

-- Whether a socket of the participant confirmed that it got the incoming call; if none did, the call is pushed.
ALTER TABLE call_participants ADD COLUMN reached boolean NOT NULL DEFAULT false;
