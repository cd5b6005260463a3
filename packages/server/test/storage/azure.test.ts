import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { createRequire } from 'node:module';
import { createOutbound } from '../../src/platform/outbound/outbound.ts';
import { createAzure } from '../../src/platform/storage/azure.ts';
import type { AzureConfig } from '../../src/platform/storage/azure.ts';
import { freePort, start } from './process.ts';
import { storageSuite } from './suite.ts';

const now = () => new Date();
// The account every Azurite has; its key is public.
const account = 'devstoreaccount1';
const accountKey = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';

/** Makes the container, by Shared Key (Azure, "Authorize with Shared Key"). */
async function createContainer(endpoint: string): Promise<number> {
  const date = now().toUTCString();
  const headers = `x-ms-date:${date}\nx-ms-version:2021-12-02`;
  // The emulator's account is in its path and in the resource, once each.
  const text = `PUT${'\n'.repeat(12)}${headers}\n/${account}/${account}/media\nrestype:container`;
  const signature = createHmac('sha256', Buffer.from(accountKey, 'base64')).update(text).digest('base64');
  const authorization = `SharedKey ${account}:${signature}`;
  const answer = await fetch(`${endpoint}/media?restype=container`, {
    method: 'PUT',
    headers: { 'x-ms-date': date, 'x-ms-version': '2021-12-02', authorization },
  });
  return answer.status;
}

storageSuite('azure (Azurite)', async () => {
  const port = await freePort();
  const main = createRequire(import.meta.url).resolve('azurite/dist/src/blob/main.js');
  const flags = ['--inMemoryPersistence', '--disableTelemetry', '--skipApiVersionCheck', '--silent'];
  const args = [main, '--blobHost', '127.0.0.1', '--blobPort', String(port), ...flags];
  const azurite = await start(process.execPath, args, port, 'npm package azurite');
  const endpoint = `http://127.0.0.1:${port}/${account}`;
  assert.equal(await createContainer(endpoint), 201);
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
