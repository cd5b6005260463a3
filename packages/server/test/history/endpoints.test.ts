import assert from 'node:assert/strict';
import { test } from 'node:test';
import { removeExpired } from '../../src/features/retention/retention.ts';
import { createDashboard, join, signedInOwner } from '../accounts/dashboard.ts';
import { dump } from '../core/tools.ts';
import { assertError } from '../support/api.ts';
import { use, useService } from '../support/use.ts';
import { startCustomerPostgres, startHistoryReceiver } from './servers.ts';
import { eventually, openStorage } from './world.ts';

/** storage#slots: every row of the table, for the database. */

const { service, scene, db, sql } = useService({ env: { CHAT_EGRESS_IP: '192.0.2.7' } });
const customer = use(startCustomerPostgres, (c) => c.stop());
const receiver = use(
  () => startHistoryReceiver(),
  (r) => r.close(),
);

test('GET: the record of a new environment', async () => {
  const { body } = await (await openStorage(service, db, 'env_other')).api('GET', '/v1/storage');
  assert.deepEqual(body, {
    mode: 'managed',
    bufferRetention: '7d',
    database: { active: null, slots: { a: null, b: null } },
    sink: {
      status: 'idle',
      lagSeconds: 0,
      backlog: 0,
      refused: 0,
      erasures: 0,
      lastSuccessAt: null,
      error: null,
      copy: null,
    },
    media: { provider: 'managed', lastTest: null },
    egressIp: '192.0.2.7',
    supported: {
      databases: ['postgres', 'mysql', 'mongodb', 'http'],
      media: ['cloudinary', 's3', 'azure'],
      retentions: ['24h', '72h', '7d', '30d'],
    },
  });
});

test('who may: a session, an environment, a role, and for changes a sign-in within 15 minutes', async () => {
  const owner = await signedInOwner(service.url);
  assertError(await scene.server('GET', '/v1/storage'), 403, 'forbidden');
  assertError(await createDashboard(service.url).in('env_dev')('GET', '/v1/storage'), 401, 'token_invalid');
  assertError(await owner.api('GET', '/v1/storage'), 400, 'invalid_request');
  assertError(await owner.in('env_nobody')('GET', '/v1/storage'), 404, 'not_found');
  const { body } = await owner.api('GET', '/v1/session');
  const viewer = await join(service.url, owner, body.organizations[0].id, 'viewer');
  assert.equal((await viewer.in('env_dev')('GET', '/v1/storage')).status, 200);
  assertError(
    await viewer.in('env_dev')('PATCH', '/v1/storage', { bufferRetention: '24h' }),
    403,
    'forbidden',
  );
  await sql(`UPDATE account_sessions SET signed_in_at = signed_in_at - interval '16 minutes'`);
  const api = owner.in('env_dev');
  assert.equal((await api('GET', '/v1/storage')).status, 200);
  for (const [method, path, input] of [
    ['PATCH', '/v1/storage', { bufferRetention: '24h' }],
    ['PUT', '/v1/storage/database/a', { url: 'postgres://u:p@127.0.0.1/x' }],
    ['POST', '/v1/storage/database/a/rotate-secret', undefined],
    ['POST', '/v1/storage/database/test', {}],
    ['POST', '/v1/storage/database/migrate', { adminUrl: 'postgres://u:p@127.0.0.1/x' }],
    ['POST', '/v1/storage/database/promote/a', undefined],
    ['POST', '/v1/storage/database/resync', undefined],
  ] as const)
    assertError(await api(method, path, input), 403, 'reauth_required');
});

test('from an admin’s URL to a database of one’s own, without a secret in any answer, log or audit entry', async () => {
  const storage = await openStorage(service, db, 'env_prod');
  const { api } = storage;
  const adminUrl = (await customer.createDatabase()).replace('parley:x', 'parley:adm1n-s3cret');
  assertError(await api('PATCH', '/v1/storage', { mode: 'byo_db' }), 400, 'invalid_request');
  const { status, body } = await api('POST', '/v1/storage/database/migrate', { adminUrl });
  assert.equal(status, 200, JSON.stringify(body));
  assert.match(body.runtimeUrl, /^postgresql:\/\/parley_writer_[0-9a-f]{8}:\*\*\*@127\.0\.0\.1/);
  assert.deepEqual([body.slot.type, body.slot.lastTest.ok, body.slot.schemaVersion], ['postgres', true, 2]);

  const report = (await api('POST', '/v1/storage/database/test', {})).body;
  assert.deepEqual(Object.keys(report).sort(), [
    'egressIp',
    'errors',
    'grants',
    'ok',
    'role',
    'rttMs',
    'schemaVersion',
    'tls',
    'type',
    'version',
    'warnings',
  ]);
  assert.deepEqual(
    [report.ok, report.type, report.egressIp, report.grants],
    [true, 'postgres', '192.0.2.7', ['SELECT', 'INSERT', 'UPDATE', 'DELETE']],
  );
  assert.match(report.role, /^parley_writer_/);

  const on = (await api('PATCH', '/v1/storage', { mode: 'byo', bufferRetention: '24h' })).body;
  assert.deepEqual([on.mode, on.bufferRetention, on.database.active], ['byo_db', '24h', 'a']);
  await storage.settled();
  assert.equal((await storage.record()).sink.status, 'healthy');
  assertError(await api('PUT', '/v1/storage/database/a', { url: adminUrl }), 400, 'invalid_request');

  const again = await api('PUT', '/v1/storage/database/b', { url: adminUrl, replicaUrl: adminUrl });
  assert.equal(again.status, 200);
  assert.equal(again.body.replicaUrl, again.body.url);
  assert.ok(again.body.url.includes('parley:***@'));
  const promoted = await api('POST', '/v1/storage/database/promote/b');
  assert.deepEqual([promoted.status, promoted.body.database.active], [200, 'b']);
  assert.equal(promoted.body.sink.copy, null, 'the same database under another user: nothing to copy');
  assert.equal((await api('POST', '/v1/storage/database/resync')).status, 202);
  await storage.settled();

  const actions = (await api('GET', '/v1/audit?limit=200')).body.data;
  for (const action of [
    'storage.migrateDatabase',
    'storage.setDatabase',
    'storage.update',
    'storage.promote',
    'storage.resync',
  ])
    assert.ok(
      actions.some((entry: any) => entry.action === action && entry.environmentId === 'env_prod'),
      action,
    );
  const everything = [
    JSON.stringify(actions),
    JSON.stringify(await storage.record()),
    service.output(),
    await dump(db),
  ].join();
  assert.ok(!everything.includes('adm1n-s3cret'), 'the password is nowhere in clear');
  assert.ok(!/parley_writer_[0-9a-f]{8}:P[0-9a-f]{48}/.test(everything));
});

test('what cannot be is refused, and says what is wrong', async () => {
  const { api } = await openStorage(service, db);
  for (const [url, more] of [
    ['redis://h/0', {}],
    ['postgres://u:p@h/x', { type: 'mysql' }],
    ['postgres://u:p@h/x', { schema: 'a"b' }],
    ['postgres://u:p@h/x?sslcert=/etc/passwd', {}],
    ['https://u:p@h/x', {}],
  ] as const)
    assertError(await api('PUT', '/v1/storage/database/a', { url, ...more }), 400, 'invalid_request');
  assertError(
    await api('PUT', '/v1/storage/database/c', { url: 'postgres://u:p@h/x' }),
    400,
    'invalid_request',
  );
  assertError(await api('POST', '/v1/storage/database/test', { slot: 'b' }), 404, 'not_found');
  assertError(await api('POST', '/v1/storage/database/promote/b'), 404, 'not_found');
  assertError(await api('POST', '/v1/storage/database/resync'), 400, 'invalid_request');
  assertError(await api('PATCH', '/v1/storage', {}), 400, 'invalid_request');
  assertError(
    await api('POST', '/v1/storage/database/migrate', { adminUrl: 'https://h/x' }),
    400,
    'invalid_request',
  );
  const gone = await api('POST', '/v1/storage/database/migrate', {
    adminUrl: 'postgres://u:secret1@127.0.0.1:9/x?sslmode=disable',
  });
  assert.match(assertError(gone, 400, 'invalid_request').message, /cannot be reached/);
  assert.equal(
    (await api('PUT', '/v1/storage/database/a', { url: 'postgres://u:p@127.0.0.1:9/x?sslmode=disable' }))
      .status,
    200,
  );
  const report = (await api('POST', '/v1/storage/database/test', {})).body;
  assert.deepEqual([report.ok, report.errors.length], [false, 1]);
  assertError(await api('PATCH', '/v1/storage', { mode: 'byo_db' }), 400, 'invalid_request');
});

test('the type is found from the URL when it is left out', async () => {
  const { api } = await openStorage(service, db);
  for (const [url, type] of [
    ['postgresql://u:p@h/x', 'postgres'],
    ['mysql://u:p@h/x', 'mysql'],
    ['mariadb://u:p@h/x', 'mysql'],
    ['mongodb://u:p@h1,h2/x', 'mongodb'],
    ['https://h/x', 'http'],
  ] as const) {
    const { status, body } = await api('PUT', '/v1/storage/database/b', { url });
    assert.deepEqual([status, body.type], [200, type], url);
  }
});

test('connecting to a slot’s database is limited, slot by slot', async () => {
  const { api } = await openStorage(service, db, 'env_other');
  const put = (slot: string) =>
    api('PUT', `/v1/storage/database/${slot}`, { url: 'postgres://u:p@127.0.0.1:9/x?sslmode=disable' });
  const tried = (slot: string) => api('POST', '/v1/storage/database/test', { slot });
  assert.deepEqual([(await put('a')).status, (await put('b')).status], [200, 200]);
  let answer = await tried('b');
  for (let i = 0; i < 60 && answer.status === 200; i++) answer = await tried('b');
  assert.ok(assertError(answer, 429, 'rate_limited').retryAfterMs! > 0);
  assert.equal((await tried('a')).status, 200);
});

test('an http endpoint: its secret is shown once, requests carry it, and a rotated one overlaps', async () => {
  const storage = await openStorage(service, db, 'env_other');
  const put = await storage.api('PUT', '/v1/storage/database/a', { url: receiver.url });
  assert.match(put.body.signingSecret, /^whsec_/);
  assert.equal(put.body.type, 'http');
  assert.ok(!JSON.stringify(await storage.record()).includes(put.body.signingSecret));
  const ok = async () =>
    (await storage.api('POST', '/v1/storage/database/test', { slot: 'a' })).body.ok as boolean;
  assert.equal(await ok(), false, 'the receiver has another secret');
  receiver.secret = put.body.signingSecret;
  assert.equal(await ok(), true);
  const rotated = await storage.api('POST', '/v1/storage/database/a/rotate-secret');
  assert.match(rotated.body.signingSecret, /^whsec_/);
  assert.notEqual(rotated.body.signingSecret, put.body.signingSecret);
  assert.equal(await ok(), true, 'the old one still counts');
  receiver.secret = rotated.body.signingSecret;
  assert.equal(await ok(), true);
});

test('events stay readable as long as the environment’s own buffer', async () => {
  const { api } = await openStorage(service, db);
  assert.equal((await api('PATCH', '/v1/storage', { bufferRetention: '30d' })).status, 200);
  const writer = await scene.actor();
  const { id: cid } = await scene.group(writer, []);
  await scene.send(writer, cid);
  await sql(
    `UPDATE events SET created_at = created_at - interval '10 days' WHERE conv = (SELECT no FROM conversations WHERE id = $1)`,
    [cid],
  );
  const events = () => scene.server('GET', `/v1/conversations/${cid}/events?after=0`);
  const whole = await events();
  assert.deepEqual([whole.status, whole.body.data.length], [200, 2]);
  const instance = 24 * 3_600_000;
  await removeExpired(db, instance);
  assert.deepEqual((await events()).body, whole.body, 'whatever the instance keeps for the others');
  assert.equal((await api('PATCH', '/v1/storage', { bufferRetention: '7d' })).status, 200);
  await eventually(async () => (await events()).status === 410, 'the floor moved');
  await removeExpired(db, instance);
  const left = `SELECT 1 FROM events WHERE conv = (SELECT no FROM conversations WHERE id = $1)`;
  assert.deepEqual(await sql(left, [cid]), []);
});
