import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { freePort, start } from './process.ts';
import type { Running } from './process.ts';

// The account every Azurite has; its key is public.
export const account = 'devstoreaccount1';
export const accountKey =
  'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';

/** Makes the container, by Shared Key (Azure, "Authorize with Shared Key"). */
async function createContainer(endpoint: string): Promise<number> {
  const date = new Date().toUTCString();
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

/** The vendor's own emulator, with an empty container `media`. */
export async function startAzurite(): Promise<Running & { endpoint: string }> {
  const port = await freePort();
  const main = fileURLToPath(import.meta.resolve('azurite/dist/src/blob/main.js'));
  const flags = ['--inMemoryPersistence', '--disableTelemetry', '--skipApiVersionCheck', '--silent'];
  const args = [main, '--blobHost', '127.0.0.1', '--blobPort', String(port), ...flags];
  const azurite = await start(process.execPath, args, port, 'npm package azurite');
  const endpoint = `http://127.0.0.1:${port}/${account}`;
  assert.equal(await createContainer(endpoint), 201);
  return { ...azurite, endpoint };
}
