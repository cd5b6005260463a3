import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { assertError, serverApi } from '../support/api.ts';
import { ok, startReceiver, status, verify } from './receiver.ts';
import { addEndpoint, deliveries, delivery, pass } from './tools.ts';
import { setUp, use, useService } from '../support/use.ts';

const { service, server, db } = useService();
const receiver = use(startReceiver, (r) => r.close());
let conversation: string;
let endpoint: { id: string; secret: string };

setUp(async () => {
  conversation = (await server('POST', '/v1/conversations', { type: 'group', members: ['a'] })).body.id;
});
beforeEach(async () => {
  receiver.answer = ok;
  receiver.received.length = 0;
  endpoint = await addEndpoint(server, `${receiver.url}/hook?x=1`, ['message.created', 'message.deleted']);
});
afterEach(() => server('DELETE', `/v1/webhooks/${endpoint.id}`));

const send = async (text: string): Promise<{ id: string; seq: number }> =>
  (await server('POST', `/v1/conversations/${conversation}/messages`, { text })).body;
const only = (fits: Parameters<typeof delivery>[2]) => delivery(server, endpoint.id, fits);

for (const code of [200, 201, 204, 299])
  test(`webhooks#success: ${code} is success, and the log says so`, async () => {
    receiver.answer = status(code);
    await send('x');
    const record = await only((d) => d.status === 'succeeded');
    assert.match(record.id, /^whd_[0-9a-z]{26}$/);
    assert.equal(record.eventType, 'message.created');
    assert.equal(record.nextAttemptAt, null);
    assert.equal(record.payloadAvailable, true);
    const [attempt, ...more] = record.attempts;
    assert.deepEqual(more, []);
    assert.equal(attempt!.status, code);
    assert.match(attempt!.requestId, /^req_/);
    assert.equal('error' in attempt!, false);
    const [received] = await receiver.wait(1);
    assert.equal(received!.id, record.eventId);
    assert.equal(received!.path, '/hook?x=1');
  });

for (const code of [300, 301, 302, 307, 400, 404, 429, 500, 503])
  test(`webhooks#success: ${code} is a failure, not followed, and tried again after 10 s`, async () => {
    receiver.answer = status(code, { location: `${receiver.url}/elsewhere` });
    await send('x');
    const failed = await only((d) => d.attempts.length === 1);
    assert.equal(failed.status, 'pending');
    assert.equal(failed.attempts[0]!.status, code);
    const [{ at, durationMs }] = failed.attempts as [(typeof failed.attempts)[0]];
    const wait = Date.parse(failed.nextAttemptAt!) - Date.parse(at) - durationMs;
    assert.ok(wait >= 8_000 && wait <= 12_050, `${wait} ms`);
    assert.deepEqual(
      receiver.received.map((r) => r.path),
      ['/hook?x=1'],
    );
  });

test('webhooks#schedule: every attempt has the same id and a fresh timestamp and signature; the tenth is the last', async () => {
  receiver.answer = status(500);
  await send('x');
  for (let n = 1; n <= 9; n++) {
    await only((d) => d.attempts.length === n && d.status === 'pending');
    await pass(db, '29 hours');
  }
  const record = await only((d) => d.status === 'failed');
  assert.equal(record.attempts.length, 10);
  assert.equal(record.nextAttemptAt, null);
  const received = await receiver.wait(10);
  for (const r of received) {
    assert.equal(r.id, record.eventId);
    verify(endpoint.secret, r);
  }
});

test('webhooks#schedule: neither Retry-After nor 410 changes the schedule, and one 410 disables nothing', async () => {
  for (const code of [503, 410]) {
    receiver.answer = status(code, { 'retry-after': '7200' });
    const { id } = await send('x');
    const eventId = `evt_${id.slice(4)}`;
    const later = await delivery(
      server,
      endpoint.id,
      (d) => d.eventId === eventId && d.attempts.length === 1,
    );
    const wait = Date.parse(later.nextAttemptAt!) - Date.parse(later.attempts[0]!.at);
    assert.ok(later.status === 'pending' && wait >= 8_000 && wait < 60_000, `${code}: ${wait} ms`);
  }
  assert.equal((await server('GET', `/v1/webhooks/${endpoint.id}`)).body.status, 'enabled');
});

test('webhooks#bounded-answer: an endless answer is cut off and holds nothing up', async () => {
  receiver.answer = (_, res) => {
    res.writeHead(200);
    const more = (): void => {
      if (!res.destroyed) res.write(Buffer.alloc(65_536), more);
    };
    more();
  };
  await send('endless');
  await only((d) => d.status === 'succeeded');
});

test('A receiver that is not there is a failure with a reason', async () => {
  const gone = await startReceiver();
  const dead = await addEndpoint(server, gone.url, ['message.created']);
  await gone.close();
  await send('x');
  const failed = await delivery(server, dead.id, (d) => d.attempts.length === 1);
  assert.equal(failed.attempts[0]!.status, null);
  assert.match(failed.attempts[0]!.error!, /ECONNREFUSED/);
  await server('DELETE', `/v1/webhooks/${dead.id}`);
});

test('webhooks#replay: 202 with a new delivery of the same event id; the log is newest first', async () => {
  const message = await send('again');
  const original = await only((d) => d.status === 'succeeded');
  const { status: code, body } = await server(
    'POST',
    `/v1/webhooks/${endpoint.id}/deliveries/${original.id}/replay`,
  );
  assert.equal(code, 202);
  assert.notEqual(body.id, original.id);
  assert.equal(body.eventId, original.eventId);
  assert.equal(body.status, 'pending');
  const [, second] = await receiver.wait(2);
  verify(endpoint.secret, second!);
  assert.equal(second!.id, original.eventId);
  assert.equal(second!.data.message.id, message.id);
  await only((d) => d.id === body.id && d.status === 'succeeded');
  const log = await deliveries(server, endpoint.id);
  assert.deepEqual(
    log.map((d) => d.id),
    [body.id, original.id],
  );
  const page = await server('GET', `/v1/webhooks/${endpoint.id}/deliveries?limit=1`);
  const rest = await server(
    'GET',
    `/v1/webhooks/${endpoint.id}/deliveries?limit=1&cursor=${page.body.nextCursor}`,
  );
  assert.deepEqual(
    [page, rest].map((p) => p.body.data[0].id),
    [body.id, original.id],
  );
  assert.equal(rest.body.nextCursor, null);
});

test('webhooks#replay: older events cannot be replayed', async () => {
  await send('old');
  const original = await only((d) => d.status === 'succeeded');
  await db.query(
    `UPDATE webhook_deliveries SET event_at = event_at - interval '72 hours', created_at = created_at - interval '72 hours'
    WHERE id = $1`,
    [original.id],
  );
  const [record] = await deliveries(server, endpoint.id);
  assert.equal(record!.payloadAvailable, false);
  assertError(
    await server('POST', `/v1/webhooks/${endpoint.id}/deliveries/${original.id}/replay`),
    404,
    'not_found',
  );
});

test('Events that an endpoint did not subscribe to, and those of other environments, do not reach it', async () => {
  const other = serverApi(service.url, 'other');
  const theirs = await other('POST', '/v1/conversations', { type: 'group', members: ['a'] });
  await other('POST', `/v1/conversations/${theirs.body.id}/messages`, { text: 'theirs' });
  await server('POST', '/v1/conversations', { type: 'group', members: ['a'] });
  const { id } = await send('ours');
  const [received] = await receiver.wait(1);
  assert.equal(received!.data.message.id, id);
  assert.equal((await deliveries(server, endpoint.id)).length, 1);
});

test('A disabled endpoint gets nothing; enabled again it gets what comes then; a replay waits for that', async () => {
  await send('before');
  const original = await only((d) => d.status === 'succeeded');
  const off = await server('PATCH', `/v1/webhooks/${endpoint.id}`, { status: 'disabled' });
  assert.equal(off.body.status, 'disabled');
  assert.ok(off.body.disabledAt);
  await send('while disabled');
  assertError(
    await server('POST', `/v1/webhooks/${endpoint.id}/deliveries/${original.id}/replay`),
    400,
    'invalid_request',
  );
  const on = await server('PATCH', `/v1/webhooks/${endpoint.id}`, { status: 'enabled' });
  assert.deepEqual([on.body.status, on.body.disabledAt, on.body.disabledReason], ['enabled', null, null]);
  await send('after');
  const received = await receiver.wait(2);
  assert.deepEqual(
    received.map((r) => r.data.message.text),
    ['before', 'after'],
  );
});

test('Disabling ends what was pending; deleting makes it vanish', async () => {
  receiver.answer = status(500);
  await send('x');
  await only((d) => d.attempts.length === 1);
  await server('PATCH', `/v1/webhooks/${endpoint.id}`, { status: 'disabled' });
  await pass(db, '1 minute');
  const record = await only((d) => d.status === 'failed');
  assert.equal(record.attempts.length, 1, 'no further attempt');

  await server('PATCH', `/v1/webhooks/${endpoint.id}`, { status: 'enabled' });
  await send('y');
  await only((d) => d.status === 'pending' && d.attempts.length === 1);
  await server('DELETE', `/v1/webhooks/${endpoint.id}`);
  const sent = receiver.received.length;
  receiver.answer = ok;
  endpoint = await addEndpoint(server, receiver.url, ['message.created']);
  await pass(db, '1 minute');
  const { id } = await send('z');
  await receiver.next('message.created', (r) => r.data.message.id === id);
  assert.equal(receiver.received.length, sent + 1);
});
