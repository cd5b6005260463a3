import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { createScene } from '../support/scene.ts';
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

test('docs/storage.md, Changing things: who left while history was kept here is no member there after a copy', async () => {
  const storage = await openStorage(service, db, 'env_other');
  const other = createScene(service.url, 'other');
  const url = await customer.createDatabase();
  await storage.connect(url);
  const [owner, guest] = [await other.actor(), await other.actor()];
  const { id: cid } = await other.group(owner, [guest]);
  await other.send(owner, cid);
  await storage.settled();
  const members = async (): Promise<Record<string, boolean>> => {
    const client = new pg.Client(url.replace(/\?.*/, ''));
    await client.connect();
    const { rows } = await client
      .query<{ user_id: string; removed: boolean }>(
        'SELECT user_id, removed FROM parley_members WHERE conversation_id = $1',
        [cid],
      )
      .finally(() => client.end());
    return Object.fromEntries(rows.map((r) => [r.user_id, r.removed]));
  };
  assert.deepEqual(await members(), { [owner.id]: false, [guest.id]: false });

  const mode = async (to: string) => {
    assert.equal((await storage.api('PATCH', '/v1/storage', { mode: to })).status, 200);
    await storage.settled();
  };
  await mode('managed');
  assert.equal((await owner.api('DELETE', `/v1/conversations/${cid}/members/${guest.id}`)).status, 204);
  await mode('byo_db');
  assert.deepEqual(await members(), { [owner.id]: false, [guest.id]: true });
});
