-- The outbox is a queue for each consumer: who listens gets a row of its own, so that one that fails or is slow holds up no other.
-- `consumer` is a bit of environments.listeners: 1 webhooks, 2 push. What says nothing is for webhooks.
ALTER TABLE outbox ADD COLUMN consumer int NOT NULL DEFAULT 1;
DROP INDEX outbox_due;
CREATE INDEX outbox_due ON outbox (consumer, due_at);

-- Push hears of messages by its own bit from here on, also where it only makes notification.needed.
UPDATE environments e SET listeners = listeners | 2 WHERE settings ->> 'pushMode' = 'webhook' AND EXISTS (
  SELECT 1 FROM webhook_endpoints w WHERE w.env = e.no AND w.status = 'enabled' AND 'notification.needed' = ANY (w.events));

-- What waits was written once for both.
INSERT INTO outbox (consumer, id, env, type, conv, seq, message, users, actor, data, created_at, due_at)
SELECT 2, o.id, o.env, o.type, o.conv, o.seq, o.message, o.users, o.actor, o.data, o.created_at, o.due_at
FROM outbox o JOIN environments e ON e.no = o.env AND e.listeners & 2 <> 0 WHERE o.type = 'message.created';
DELETE FROM outbox o USING environments e WHERE e.no = o.env AND e.listeners & 1 = 0 AND o.consumer = 1;
