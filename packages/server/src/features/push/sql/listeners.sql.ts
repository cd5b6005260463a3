import { consumers } from '../../../log/sql/consumers.ts';

export const sql = `
-- Whether messages must be recorded for push: a provider can push to some device, or an endpoint subscribed to notification.needed.
CREATE OR REPLACE FUNCTION can_push(p_env int, p_settings jsonb) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT CASE coalesce(p_settings ->> 'pushMode', 'providers')
    WHEN 'providers' THEN EXISTS (
      SELECT 1 FROM push_credentials c WHERE c.env = p_env
        AND EXISTS (SELECT 1 FROM push_devices d WHERE d.env = c.env AND d.provider = c.provider))
    WHEN 'webhook' THEN EXISTS (
      SELECT 1 FROM webhook_endpoints w WHERE w.env = p_env AND w.status = 'enabled' AND 'notification.needed' = ANY (w.events))
    ELSE false END
$$;

-- Sets push's bit of the listeners after one of its causes changed. The row is locked first; the next statement then sees all that was
-- committed before.
CREATE OR REPLACE FUNCTION set_push_listener(p_env int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM environments WHERE no = p_env FOR NO KEY UPDATE;
  UPDATE environments SET listeners = listeners # ${consumers.push.bit}
    WHERE no = p_env AND (listeners & ${consumers.push.bit} <> 0) <> can_push(no, settings);
END $$;
`;
