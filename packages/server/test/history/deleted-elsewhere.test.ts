import assert from 'node:assert/strict';
import { test } from 'node:test';
import { use, useService } from '../support/use.ts';
import { startCustomerPostgres } from './servers.ts';
import { inspect, openStorage } from './world.ts';

const { service, scene, server, db } = useService({ env: { CHAT_ALLOW_PRIVATE_TARGETS: 'true' } });
const customer = use(startCustomerPostgres, (c) => c.stop());

test('docs/storage.md, Another database: what was deleted for good while the other slot was in use is gone there too', async () => {
  const storage = await openStorage(service, db);
  const [first, second] = [await customer.createDatabase(), await customer.createDatabase()];
  const promote = async (slot: 'a' | 'b') => {
    const { status, body } = await storage.api('POST', `/v1/storage/database/promote/${slot}`);
    assert.equal(status, 200, JSON.stringify(body));
    await storage.settled();
  };
  const inside = async (url: string): Promise<(string | null)[]> => {
    const history = await inspect(url);
    const { data } = await history.read({ conversationId: cid, limit: 50 });
    await history.close();
    return data.map((m) => m.text);
  };
  await storage.connect(first);
  const writer = await scene.actor();
  const { id: cid } = await scene.group(writer, []);
  const secret = await scene.send(writer, cid, { text: 'secret' });
  await scene.send(writer, cid, { text: 'kept' });
  await storage.settled();

  assert.equal((await storage.api('POST', '/v1/storage/database/migrate', { adminUrl: second })).status, 200);
  await promote('b');
  assert.equal((await server('DELETE', `/v1/messages/${secret.id}?hard=true`)).status, 204);
  await scene.send(writer, cid, { text: 'later' });
  await storage.cool([cid]);
  assert.deepEqual(await inside(second), ['later', 'kept']);

  await promote('a');
  assert.deepEqual(await inside(first), ['later', 'kept']);
});
