import assert from 'node:assert/strict';
import { test } from 'node:test';
import { use, useService } from '../support/use.ts';
import { startHistoryReceiver } from './servers.ts';
import { openStorage } from './world.ts';

const { service, db } = useService();
const receiver = use(startHistoryReceiver, (r) => r.close());

test('docs/storage.md, Another database: http endpoints that differ in the query are two', async () => {
  const storage = await openStorage(service, db);
  const { api } = storage;
  const put = async (slot: string, query: string) => {
    const { body } = await api('PUT', `/v1/storage/database/${slot}`, {
      url: `${receiver.url}?space=${query}`,
    });
    receiver.secret = body.signingSecret;
  };
  await put('a', '1');
  assert.equal((await api('POST', '/v1/storage/database/test', { slot: 'a' })).body.ok, true);
  assert.equal((await api('PATCH', '/v1/storage', { mode: 'byo_db' })).status, 200);
  await storage.settled();
  await put('b', '2');
  const { status, body } = await api('POST', '/v1/storage/database/promote/b');
  assert.deepEqual([status, body.database.active, body.sink.copy?.kind], [200, 'b', 'move']);
});
