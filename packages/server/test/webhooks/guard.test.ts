import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertError } from '../support/api.ts';
import { openStorage } from '../history/world.ts';
import { startReceiver } from './receiver.ts';
import { use, useService } from '../support/use.ts';

const { service, server, db } = useService({ env: { CHAT_ALLOW_PRIVATE_TARGETS: 'false' } });
const receiver = use(startReceiver, (r) => r.close());

test('webhooks#targets, hooks#request: http, private, loopback, link-local, CGNAT and metadata addresses are 400 with param url', async () => {
  const urls = [
    'http://example.com/',
    'https://localhost/',
    'https://127.0.0.1/',
    'https://2130706433/',
    'https://0x7f.1/',
    'https://10.0.0.1/',
    'https://192.168.1.1/',
    'https://100.64.0.1/',
    'https://169.254.169.254/latest/meta-data',
    'https://[::1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[fe80::1]/',
    'https://user:pass@example.com/',
    'https://example.com/hook\nHost: elsewhere',
    'https://example.com/\t',
  ];
  for (const url of urls)
    assertError(
      await server('POST', '/v1/webhooks', { url, events: ['message.created'] }),
      400,
      'invalid_request',
      'url',
    );
  assert.deepEqual((await server('GET', '/v1/webhooks')).body.data, []);
  for (const url of urls)
    assertError(await server('PUT', '/v1/hooks/before-send', { url }), 400, 'invalid_request', 'url');
  assert.deepEqual((await server('GET', '/v1/hooks')).body.data, []);
});

test('webhooks#targets: the same guard protects databases, http history endpoints and media endpoints', async () => {
  const { api, record } = await openStorage(service, db);
  const hosts = ['localhost', '127.0.0.1', '10.0.0.1', '169.254.169.254', '[::1]', '[::ffff:127.0.0.1]'];
  for (const host of hosts) {
    for (const url of [
      `postgres://u:p@${host}/x`,
      `mysql://u:p@${host}/x`,
      `mongodb://u:p@${host}/x`,
      `https://${host}/history`,
    ])
      assertError(await api('PUT', '/v1/storage/database/a', { url }), 400, 'invalid_request', 'url');
    const adminUrl = `postgres://u:p@${host}/x`;
    assertError(
      await api('POST', '/v1/storage/database/migrate', { adminUrl }),
      400,
      'invalid_request',
      'adminUrl',
    );
    const endpoint = `https://${host}`;
    for (const body of [
      {
        provider: 's3',
        region: 'eu-west-1',
        bucket: 'files',
        accessKeyId: 'k',
        secretAccessKey: 's',
        endpoint,
      },
      { provider: 'azure', account: 'a', accountKey: 'a2V5', container: 'files', endpoint },
    ])
      assertError(await api('PUT', '/v1/storage/media', body), 400, 'invalid_request');
  }
  const { database, media, egressIp } = await record();
  assert.deepEqual([database.slots, media.provider], [{ a: null, b: null }, 'managed']);
  assert.equal(egressIp, null, 'nothing is said where nothing is set');
});

test('webhooks#targets, hooks#request: the target is checked again when connecting', async () => {
  const made = await server('POST', '/v1/webhooks', {
    url: 'https://example.com/',
    events: ['message.created'],
  });
  assert.equal(made.status, 201);
  await db.query('UPDATE webhook_endpoints SET url = $1', [receiver.url.replace('http:', 'https:')]);
  const { body } = await server('POST', `/v1/webhooks/${made.body.id}/test`);
  assert.equal(body.status, 'failed');
  assert.match(body.attempts[0].error, /^refused/);
  const hook = '/v1/hooks/before-send';
  assert.equal((await server('PUT', hook, { url: 'https://example.com/' })).status, 200);
  await db.query('UPDATE hooks SET url = $1', [receiver.url.replace('http:', 'https:')]);
  const asked = (await server('POST', `${hook}/test`)).body;
  assert.deepEqual([asked.verdict, asked.status], [null, null]);
  assert.match(asked.error, /^refused/);
  assert.deepEqual(receiver.received, []);
});
