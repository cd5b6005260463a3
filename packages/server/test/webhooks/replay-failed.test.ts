import assert from 'node:assert/strict';
import { it } from 'node:test';
import { assertError } from '../support/api.ts';
import { useService } from '../support/use.ts';
import { ok, startReceiver, status } from './receiver.ts';
import { addEndpoint, deliveries, delivery, pass } from './tools.ts';

const { scene, server, sql, db } = useService();

it('replays what failed since a moment, once each, and nothing that was delivered', async (t) => {
  const receiver = await startReceiver();
  t.after(() => receiver.close());
  const { id } = await addEndpoint(server, receiver.url, ['message.created']);
  const group = await scene.group(await scene.actor(), []);
  // What a disabled endpoint was to get fails for good when it comes up.
  const fail = async () => {
    receiver.answer = status(500);
    await scene.send(null, group.id);
    await delivery(server, id, (d) => d.status === 'pending' && d.attempts.length === 1);
    await server('PATCH', `/v1/webhooks/${id}`, { status: 'disabled' });
    await pass(db, '1 minute');
    const failed = await delivery(server, id, (d) => d.status === 'failed');
    await server('PATCH', `/v1/webhooks/${id}`, { status: 'enabled' });
    return failed;
  };
  const first = await fail();
  assertError(await server('POST', `/v1/webhooks/${id}/replay-failed`, {}), 400, 'invalid_request');
  assertError(
    await server('POST', `/v1/webhooks/${id}/replay-failed`, { since: 'monday' }),
    400,
    'invalid_request',
    'since',
  );
  receiver.answer = ok;
  await scene.send(null, group.id);
  await delivery(server, id, (d) => d.status === 'succeeded');

  const later = new Date(Date.now() + 60_000).toISOString();
  const none = await server('POST', `/v1/webhooks/${id}/replay-failed`, { since: later });
  assert.deepEqual([none.status, none.body], [202, { replayed: 0, more: false }]);
  const { status: code, body } = await server('POST', `/v1/webhooks/${id}/replay-failed`, {
    since: first.createdAt,
  });
  assert.deepEqual([code, body], [202, { replayed: 1, more: false }]);
  await delivery(server, id, (d) => d.status === 'succeeded' && d.eventId === first.eventId);
  const again = await server('POST', `/v1/webhooks/${id}/replay-failed`, { since: first.createdAt });
  assert.deepEqual(again.body, { replayed: 0, more: false });
  assert.equal((await deliveries(server, id)).filter((d) => d.eventId === first.eventId).length, 2);
});

it('takes 1,000 a call and says that there is more; a disabled endpoint is refused', async (t) => {
  const receiver = await startReceiver();
  t.after(() => receiver.close());
  const { id } = await addEndpoint(server, receiver.url, ['sink.failing']);
  await sql(
    `INSERT INTO webhook_deliveries (id, env, endpoint, event_id, type, event_at, created_at, status)
     SELECT make_id('whd_', now() - (2000 - i) * interval '1 second'), w.env, w.no, 'evt_many' || i, 'sink.failing', now(), now(), 'failed'
     FROM webhook_endpoints w, generate_series(1, 1500) i WHERE w.id = $1`,
    [id],
  );
  const since = new Date(Date.now() - 3_600_000).toISOString();
  const call = () => server('POST', `/v1/webhooks/${id}/replay-failed`, { since });
  assert.deepEqual((await call()).body, { replayed: 1_000, more: true });
  assert.deepEqual((await call()).body, { replayed: 500, more: false });
  await server('PATCH', `/v1/webhooks/${id}`, { status: 'disabled' });
  assertError(await call(), 400, 'invalid_request');
});
