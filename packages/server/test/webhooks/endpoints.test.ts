import assert from 'node:assert/strict';
import { test } from 'node:test';
import { webhookEventNames } from '@parley/protocol';
import { assertError, clientApi, serverApi } from '../support/api.ts';
import type { Api } from '../support/api.ts';
import { startReceiver, status, verify } from './receiver.ts';
import { setUp, use, useService } from '../support/use.ts';

const { service, server, db } = useService({ own: true });
const receiver = use(startReceiver, (r) => r.close());
let other: Api;

setUp(async () => {
  other = serverApi(service.url, 'other');
});

async function endpoint(fields: object = {}) {
  const answer = await server('POST', '/v1/webhooks', {
    url: receiver.url,
    events: ['message.created'],
    ...fields,
  });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body;
}
const drop = (id: string) => server('DELETE', `/v1/webhooks/${id}`);

test('webhooks#endpoint: 201 with id, url, events, status and the secret, which no other answer shows', async () => {
  const made = await endpoint({ description: 'orders' });
  assert.match(made.id, /^wh_[0-9a-z]{26}$/);
  assert.match(made.secret, /^whsec_/);
  assert.equal(Buffer.from(made.secret.slice(6), 'base64').length, 32);
  const { secret: _, ...shown } = made;
  assert.deepEqual(shown, {
    id: made.id,
    url: receiver.url,
    events: ['message.created'],
    description: 'orders',
    status: 'enabled',
    createdAt: made.createdAt,
    disabledAt: null,
    disabledReason: null,
  });
  assert.deepEqual((await server('GET', `/v1/webhooks/${made.id}`)).body, shown);
  const patched = await server('PATCH', `/v1/webhooks/${made.id}`, { description: null });
  assert.deepEqual(patched.body, { ...shown, description: null });
  await drop(made.id);
});

test('webhooks#endpoint: a page of endpoints, oldest first', async () => {
  const made = [await endpoint(), await endpoint(), await endpoint()].map((e) => e.id);
  const first = await server('GET', '/v1/webhooks?limit=2');
  assert.deepEqual(
    first.body.data.map((e: { id: string }) => e.id),
    made.slice(0, 2),
  );
  const rest = await server('GET', `/v1/webhooks?limit=2&cursor=${first.body.nextCursor}`);
  assert.deepEqual(
    rest.body.data.map((e: { id: string }) => e.id),
    made.slice(2),
  );
  assert.equal(rest.body.nextCursor, null);
  assert.equal('secret' in rest.body.data[0], false);
  assert.deepEqual((await other('GET', '/v1/webhooks')).body.data, []);
  for (const id of made) await drop(id);
});

test('webhooks#endpoint: every event of the catalogue can be subscribed to, nothing else', async () => {
  const made = await endpoint({ events: [...webhookEventNames, 'message.created'] });
  assert.deepEqual(made.events, webhookEventNames);
  await drop(made.id);
  for (const events of [[], ['message.new'], ['*'], 'message.created', undefined])
    assertError(await server('POST', '/v1/webhooks', { url: receiver.url, events }), 400, 'invalid_request');
  assertError(
    await server('POST', '/v1/webhooks', { url: receiver.url, events: ['message.created'], x: 1 }),
    400,
    'unknown_field',
    'x',
  );
});

test('webhooks#targets: a URL that is none, not http(s) or carries credentials is 400 with param url', async () => {
  for (const url of [
    'nonsense',
    'ftp://example.com',
    'https://user:pass@example.com/',
    '',
    'javascript:alert(1)',
  ])
    assertError(
      await server('POST', '/v1/webhooks', { url, events: ['message.created'] }),
      400,
      'invalid_request',
      'url',
    );
  const made = await endpoint();
  assertError(
    await server('PATCH', `/v1/webhooks/${made.id}`, { url: 'nonsense' }),
    400,
    'invalid_request',
    'url',
  );
  assertError(await server('PATCH', `/v1/webhooks/${made.id}`, {}), 400, 'invalid_request');
  assert.equal((await server('GET', `/v1/webhooks/${made.id}`)).body.url, receiver.url);
  await drop(made.id);
});

test('api#tenants: another environment’s and unknown ids are not_found; clients are refused', async () => {
  const made = await endpoint();
  const client = await clientApi(service.url, 'a');
  const paths: [string, string, object?][] = [
    ['GET', ''],
    ['PATCH', '', { description: 'x' }],
    ['POST', '/rotate-secret'],
    ['POST', '/test'],
    ['GET', '/deliveries'],
    ['POST', '/deliveries/whd_x/replay'],
    ['DELETE', ''],
  ];
  for (const [method, path, body] of paths) {
    assertError(await other(method, `/v1/webhooks/${made.id}${path}`, body), 404, 'not_found');
    assertError(await server(method, `/v1/webhooks/wh_unknown${path}`, body), 404, 'not_found');
    assertError(await client(method, `/v1/webhooks/${made.id}${path}`, body), 403, 'forbidden');
  }
  assertError(
    await client('POST', '/v1/webhooks', { url: receiver.url, events: ['message.created'] }),
    403,
    'forbidden',
  );
  assertError(await server('POST', `/v1/webhooks/${made.id}/deliveries/whd_x/replay`), 404, 'not_found');
  assert.equal((await drop(made.id)).status, 204);
  assertError(await drop(made.id), 404, 'not_found');
});

test('20 endpoints per environment, exactly, also when they come at once', async () => {
  const body = { url: receiver.url, events: ['message.created'] };
  const answers = await Promise.all(Array.from({ length: 25 }, () => other('POST', '/v1/webhooks', body)));
  const made = answers.filter((a) => a.status === 201);
  assert.equal(made.length, 20);
  for (const refused of answers.filter((a) => a.status !== 201)) assertError(refused, 400, 'invalid_request');
  await other('DELETE', `/v1/webhooks/${made[0]!.body.id}`);
  assert.equal((await other('POST', '/v1/webhooks', body)).status, 201);
  const { body: all } = await other('GET', '/v1/webhooks');
  await Promise.all(all.data.map((e: { id: string }) => other('DELETE', `/v1/webhooks/${e.id}`)));
});

test('api#idempotency: a repeated creation shows the same secret and makes one endpoint', async () => {
  const key = { 'idempotency-key': crypto.randomUUID() };
  const body = { url: receiver.url, events: ['message.created'] };
  const [one, two] = [
    await server('POST', '/v1/webhooks', body, key),
    await server('POST', '/v1/webhooks', body, key),
  ];
  assert.deepEqual(two.body, one.body);
  assert.equal((await server('GET', '/v1/webhooks')).body.data.length, 1);
  await drop(one.body.id);
});

test('webhooks#test: sends webhook.test once and answers with its delivery record', async () => {
  const made = await endpoint();
  const { status: code, body } = await server('POST', `/v1/webhooks/${made.id}/test`);
  assert.equal(code, 200);
  assert.equal(body.eventType, 'webhook.test');
  assert.equal(body.status, 'succeeded');
  assert.equal(body.attempts.length, 1);
  assert.equal(body.attempts[0].status, 204);
  const received = await receiver.next('webhook.test', (r) => r.id === body.eventId);
  verify(made.secret, received);
  assert.equal(received.headers['request-id'], body.attempts[0].requestId);
  assert.deepEqual((await server('GET', `/v1/webhooks/${made.id}/deliveries`)).body, {
    data: [body],
    nextCursor: null,
  });

  receiver.answer = status(500);
  const failed = await server('POST', `/v1/webhooks/${made.id}/test`);
  assert.equal(failed.body.status, 'failed', 'a test is one attempt');
  assert.equal(failed.body.nextAttemptAt, null);
  assert.match(failed.body.attempts[0].error, /500/);
  receiver.answer = status(204);
  const later = await server('POST', `/v1/webhooks/${made.id}/test`, undefined, {
    'idempotency-key': crypto.randomUUID(),
  });
  await receiver.next('webhook.test', (r) => r.id === later.body.eventId);
  await drop(made.id);
});

test('webhooks#rotation: after a rotation both signatures are sent for 24 h, then the new one alone', async () => {
  const made = await endpoint();
  const rotated = await server('POST', `/v1/webhooks/${made.id}/rotate-secret`);
  assert.equal(rotated.status, 200);
  assert.notEqual(rotated.body.secret, made.secret);
  const again = await server('POST', `/v1/webhooks/${made.id}/rotate-secret`);
  const deliver = async () => {
    const { body } = await server('POST', `/v1/webhooks/${made.id}/test`);
    return receiver.next('webhook.test', (r) => r.id === body.eventId);
  };
  const signed = await deliver();
  assert.equal(signed.headers['webhook-signature']!.split(' ').length, 3);
  for (const { secret } of [made, rotated.body, again.body]) verify(secret, signed);

  await db.query(`UPDATE webhook_secrets SET expires_at = expires_at - interval '24 hours'`);
  const later = await deliver();
  verify(again.body.secret, later);
  for (const old of [made.secret, rotated.body.secret]) assert.throws(() => verify(old, later));
  await drop(made.id);
});

test('Secrets are sealed at rest and never logged', async () => {
  const made = await endpoint();
  const rows = await db.query<{ secret: Buffer }>('SELECT secret FROM webhook_secrets');
  const plain = Buffer.from(made.secret.slice(6), 'base64');
  assert.ok(rows.length > 0);
  for (const { secret } of rows) assert.equal(secret.includes(plain), false);
  assert.equal(service.output().includes(made.secret.slice(6)), false);
  await drop(made.id);
});
