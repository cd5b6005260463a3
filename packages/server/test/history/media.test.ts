import assert from 'node:assert/strict';
import { test } from 'node:test';
import { account, accountKey, startAzurite } from '../storage/azurite.ts';
import { assertError } from '../support/api.ts';
import { use, useService } from '../support/use.ts';
import { eventually, openStorage } from './world.ts';

/** storage#media: media storages of customers, and files that stay where they are. */

const { service, scene, server, db, sql, restart } = useService({ own: true });
const azurite = use(
  async () => {
    const running = await startAzurite();
    return { ...running, config: { account, accountKey, container: 'media', endpoint: running.endpoint } };
  },
  (a) => a.stop(),
);

async function upload(cid: string, text: string): Promise<string> {
  const bytes = Buffer.from(text);
  const input = { conversationId: cid, filename: 'a.txt', size: bytes.length, contentType: 'text/plain' };
  const { status, body } = await server('POST', '/v1/uploads', input);
  assert.equal(status, 201, JSON.stringify(body));
  const put = await fetch(body.upload.url, {
    method: body.upload.method,
    headers: body.upload.headers,
    body: bytes,
  });
  assert.ok(put.ok, String(put.status));
  assert.equal((await server('POST', `/v1/uploads/${body.attachmentId}/complete`)).status, 200);
  return body.attachmentId;
}
const read = async (id: string): Promise<[string, string]> => {
  const { status, body } = await server('GET', `/v1/attachments/${id}/url`);
  assert.equal(status, 200, JSON.stringify(body));
  return [new URL(body.url).host, await (await fetch(body.url)).text()];
};

test('a storage of one’s own is tested, used and left again, and every file stays readable where it was put', async () => {
  const { api, record } = await openStorage(service, db);
  const { id: cid } = await scene.group(null, [await scene.actor()]);
  const first = await upload(cid, 'with the service');
  const azure = { provider: 'azure', ...azurite.config };
  const wrong = await api('PUT', '/v1/storage/media', {
    ...azure,
    accountKey: Buffer.from('wrong key').toString('base64'),
  });
  assert.deepEqual(
    [wrong.status, wrong.body.ok, wrong.body.checks[0].name, wrong.body.checks[0].ok],
    [200, false, 'upload', false],
  );
  assert.equal((await record()).media.provider, 'managed', 'what fails its test is not used');

  const right = await api('PUT', '/v1/storage/media', azure);
  assert.deepEqual(
    [right.status, right.body.ok, right.body.error, right.body.provider],
    [200, true, null, 'azure'],
    JSON.stringify(right.body),
  );
  assert.deepEqual(
    right.body.checks.map((c: { name: string }) => c.name),
    ['upload', 'read', 'delete'],
  );
  const { media } = await record();
  assert.deepEqual(
    [media.provider, media.account, media.lastTest.ok],
    ['azure', azurite.config.account, true],
  );
  assert.ok(!JSON.stringify(await record()).includes(azurite.config.accountKey));

  const second = await upload(cid, 'with the customer');
  const [host, text] = await read(second);
  assert.deepEqual([text, host], ['with the customer', new URL(azurite.config.endpoint).host]);
  assert.deepEqual((await read(first))[1], 'with the service');
  assert.equal((await api('POST', '/v1/storage/media/test', {})).body.ok, true);
  const cors = (await api('POST', '/v1/storage/media/test', { origin: 'https://app.example.com' })).body;
  assert.equal(cors.checks.at(-1).name, 'cors');

  assert.equal((await api('DELETE', '/v1/storage/media')).status, 204);
  assert.equal((await record()).media.provider, 'managed');
  const third = await upload(cid, 'with the service again');
  assert.equal((await read(third))[1], 'with the service again');
  assert.deepEqual(await read(second), [host, 'with the customer']);
  const places = await sql('SELECT storage FROM attachments WHERE id = ANY($1) ORDER BY created_at', [
    [first, second, third],
  ]);
  assert.deepEqual(
    places.map((p) => Math.sign(p['storage'] as number)),
    [-1, 1, -1],
  );
  const actions = (await api('GET', '/v1/audit?limit=200')).body.data;
  for (const action of ['storage.setMedia', 'storage.removeMedia'])
    assert.ok(
      actions.some((a: { action: string }) => a.action === action),
      action,
    );
  assert.ok(!JSON.stringify(actions).includes(azurite.config.accountKey));
});

test('a file is read and deleted where it was put, whatever the environment or the operator has changed since', async () => {
  const { api } = await openStorage(service, db);
  const { id: cid } = await scene.group(null, [await scene.actor()]);
  const sent = async (text: string) => {
    const id = await upload(cid, text);
    const { id: message } = await scene.send(null, cid, { attachments: [id] });
    return { id, text, message };
  };
  const own = await sent('in the directory');
  assert.equal(
    (await api('PUT', '/v1/storage/media', { provider: 'azure', ...azurite.config })).body.ok,
    true,
  );
  const customers = await sent('with the customer');
  assert.equal((await api('DELETE', '/v1/storage/media')).status, 204);
  const key = encodeURIComponent(accountKey);
  const endpoint = encodeURIComponent(azurite.endpoint);
  service.env['CHAT_MEDIA_URL'] = `azure://${account}:${key}@media?prefix=operator&endpoint=${endpoint}`;
  await restart();
  const operators = await sent('in the bucket of the operator');

  for (const { id, text, message } of [own, customers, operators]) {
    const { url } = (await server('GET', `/v1/attachments/${id}/url`)).body;
    assert.equal(new URL(url).port === new URL(azurite.endpoint).port, id !== own.id, text);
    assert.equal(await (await fetch(url)).text(), text);
    assert.equal((await server('DELETE', `/v1/messages/${message}?hard=true`)).status, 204);
    await eventually(async () => (await fetch(url)).status === 404, `gone from where it was: ${text}`);
  }
});

test('fields of another provider, missing ones and bad names are refused', async () => {
  const { api } = await openStorage(service, db);
  const s3 = { provider: 's3', region: 'eu-west-1', bucket: 'files', accessKeyId: 'k', secretAccessKey: 's' };
  for (const body of [
    { provider: 'ftp' },
    { ...s3, account: 'x' },
    { provider: 's3', region: 'eu-west-1' },
    { ...s3, bucket: 'no/bucket', endpoint: 'http://127.0.0.1:9' },
    { provider: 'cloudinary', cloudinaryUrl: 'https://example.com' },
    { ...s3, more: 1 },
  ])
    assert.equal((await api('PUT', '/v1/storage/media', body)).status, 400, JSON.stringify(body));
  const gone = await api('PUT', '/v1/storage/media', { ...s3, endpoint: 'http://127.0.0.1:9' });
  assert.deepEqual([gone.status, gone.body.ok], [200, false]);
  assertError(await server('PUT', '/v1/storage/media', s3), 403, 'forbidden');
});
