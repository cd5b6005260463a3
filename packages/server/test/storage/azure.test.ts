import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOutbound } from '../../src/platform/outbound/outbound.ts';
import { createAzure } from '../../src/platform/storage/azure.ts';
import type { AzureConfig } from '../../src/platform/storage/azure.ts';
import { account, accountKey, startAzurite } from './azurite.ts';
import { freePort } from './process.ts';
import { storageSuite } from './suite.ts';

const now = () => new Date();

storageSuite('azure (Azurite)', async () => {
  const azurite = await startAzurite();
  const { endpoint } = azurite;
  const outbound = createOutbound({ allowPrivate: true });
  const deps = { request: outbound.request, now };
  const config: AzureConfig = {
    provider: 'azure',
    account,
    accountKey,
    container: 'media',
    prefix: 'chat',
    endpoint,
  };
  const wrongKey = Buffer.alloc(32, 1).toString('base64');
  return {
    storage: createAzure(config, deps),
    at: (time) => createAzure(config, { ...deps, now: () => time }),
    unreachable: createAzure(
      { ...config, endpoint: `http://127.0.0.1:${await freePort()}/${account}` },
      deps,
    ),
    stranger: createAzure({ ...config, accountKey: wrongKey }, deps),
    refuses: { type: false, size: false, overwrite: true, content: false },
    namesDownloads: true,
    async stop() {
      outbound.close();
      await azurite.stop();
    },
  };
});

test('the endpoint is the account on the public cloud by default, and https only', async () => {
  const deps = { request: () => Promise.reject(new Error('unused')), now };
  const storage = createAzure({ provider: 'azure', account: 'acme1', accountKey, container: 'media' }, deps);
  const { url, headers } = await storage.ticket({
    key: 'env_a/att_b',
    contentType: 'image/png',
    size: 1,
    filename: 'a.png',
    resource: 'image',
    expiresAt: new Date('2030-01-02T03:04:05.678Z'),
  });
  assert.match(url, /^https:\/\/acme1\.blob\.core\.windows\.net\/media\/env_a\/att_b\?/);
  const query = new URL(url).searchParams;
  assert.deepEqual(
    [query.get('sp'), query.get('spr'), query.get('se')],
    ['c', 'https', '2030-01-02T03:04:05Z'],
  );
  assert.deepEqual(headers, { 'content-type': 'image/png', 'x-ms-blob-type': 'BlockBlob' });
});
