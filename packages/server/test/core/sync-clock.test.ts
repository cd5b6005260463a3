import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lockConversation } from '../../src/log/sql/lock.ts';
import { until } from '../start/npm-start.ts';
import type { Actor } from '../support/scene.ts';
import { useService } from '../support/use.ts';
import { hold, holdConversation } from './log-tools.ts';
import { ageConversations } from './tools.ts';

/** events#sync-clock: repeats are normal, misses are not; whatever transactions and clocks do. */

const { scene, db, sql } = useService();

const sync = async (of: Actor, cursor: string | null) =>
  (await of.api('POST', '/v1/sync', { cursor })).body as {
    conversations: { id: string }[];
    cursor: string;
    fullReload: boolean;
  };
const lists = async (of: Actor, cursor: string, id: string): Promise<boolean> =>
  (await sync(of, cursor)).conversations.some((c) => c.id === id);
const timeOf = (cursor: string): number => Number.parseInt(cursor.split('.')[1]!, 36);
const clock = async (): Promise<number> =>
  Number((await sql('SELECT extract(epoch FROM clock_timestamp()) * 1000 AS ms'))[0]!['ms']);

test('a cursor never passes a transaction that is still running', async () => {
  const ann = await scene.actor();
  const group = await scene.group(ann, []);
  const before = await clock();
  const release = await hold(db, async (tx) => {
    await lockConversation(tx, 1, group.id);
    await tx.query('UPDATE conversations SET last_activity_at = activity_now() WHERE id = $1', [group.id]);
  });
  const began = await clock();
  await scene.group(ann, []);
  const { cursor } = await sync(ann, null);
  assert.ok(timeOf(cursor) >= Math.floor(before), 'it goes as far as it can');
  assert.ok(timeOf(cursor) <= began, 'what the transaction stamped is not before it');
  await release();
  assert.ok(timeOf((await sync(ann, null)).cursor) >= began);
});

test('a change is stamped when it has the lock, not when it asks for it', async () => {
  const ann = await scene.actor();
  const group = await scene.group(ann, []);
  const release = await holdConversation(db, group.id);
  const change = ann.api('PATCH', `/v1/conversations/${group.id}`, { name: 'late' });
  await until(async () => {
    const rows = await sql(
      `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%conversations%'`,
    );
    return rows.length > 0;
  });
  const had = await clock();
  await release();
  assert.equal((await change).status, 200);
  const [row] = await sql(
    `SELECT extract(epoch FROM c.last_activity_at) * 1000 AS stamped, extract(epoch FROM e.created_at) * 1000 AS at
     FROM conversations c JOIN events e ON e.conv = c.no AND e.seq = c.last_seq WHERE c.id = $1`,
    [group.id],
  );
  assert.ok(Number(row!['stamped']) >= Math.floor(had), 'the activity');
  assert.ok(Number(row!['at']) >= Math.floor(had), 'the event');
});

test('a database clock that is set back makes sync miss nothing', async () => {
  const ann = await scene.actor();
  const [first, second, third] = [
    await scene.group(ann, []),
    await scene.group(ann, []),
    await scene.group(ann, []),
  ];
  // As it is when the machine's clock stood an hour ahead, cursors were given out by it, and then it was set right.
  await sql(`UPDATE store_clock SET seen = clock_timestamp() + interval '1 hour'`);
  const { cursor } = await sync(ann, null);
  await scene.send(ann, first.id);
  assert.ok(await lists(ann, cursor, first.id), 'before anybody noticed');
  await until(
    async () => (await sql(`SELECT 1 FROM store_clock WHERE ahead > interval '59 minutes'`)).length > 0,
  );
  const next = await sync(ann, cursor);
  assert.equal(next.fullReload, false);
  await scene.send(ann, second.id);
  await ann.api('PUT', `/v1/conversations/${first.id}/mute`);
  assert.equal((await ann.api('DELETE', `/v1/conversations/${third.id}/members/${ann.id}`)).status, 204);
  const last = await ann.api('POST', '/v1/sync', { cursor: next.cursor });
  assert.deepEqual(last.body.removed, [third.id]);
  const found = (last.body.conversations as { id: string }[]).map((c) => c.id);
  for (const { id } of [first, second]) assert.ok(found.includes(id));
  const message = await scene.send(ann, second.id);
  assert.ok(
    Math.abs(Date.parse(message.createdAt) - Date.now()) < 1_800_000,
    'people are told the time of the day',
  );
});

test('after a clock was set back the list still repeats and skips nothing, whatever is written meanwhile', async () => {
  assert.equal((await sql(`SELECT 1 FROM store_clock WHERE ahead > interval '59 minutes'`)).length, 1);
  const ann = await scene.actor();
  const ids: string[] = [];
  for (let i = 0; i < 6; i++) {
    const { id } = await scene.group(ann, []);
    await scene.send(ann, id);
    // Older than what a cursor keeps in mind, and from after the clock was set.
    await ageConversations(db, [id], 6 - i);
    ids.unshift(id);
  }
  const page = async (cursor: string) => (await ann.api('GET', `/v1/conversations?limit=3${cursor}`)).body;
  const first = await page('');
  const listed = (body: { data: { id: string }[] }) => body.data.map((c) => c.id);
  assert.deepEqual(listed(first), ids.slice(0, 3));
  await scene.send(ann, ids[1]!);
  assert.equal((await ann.api('PATCH', `/v1/conversations/${ids[4]}`, { name: 'moved' })).status, 200);
  const second = await page(`&cursor=${first.nextCursor}`);
  assert.deepEqual(listed(second), ids.slice(3));
  assert.equal(second.nextCursor, null);
});

test('a store that was restored to an earlier state: clients load everything again, live ones too', async () => {
  const ann = await scene.person();
  const group = await scene.group(ann.actor, []);
  const { cursor } = await sync(ann.actor, null);
  const [, , xid, mark] = cursor.split('.');
  // Of the same minute: the mark is known, and the transaction is not yet.
  const further = (Number.parseInt(xid!, 36) + 1_000_000).toString(36);
  const ahead = await sync(ann.actor, cursor.replace(`.${xid}.`, `.${further}.`));
  assert.equal(ahead.fullReload, true);
  assert.ok(ahead.conversations.some((c) => c.id === group.id));
  assert.equal((await sync(ann.actor, ahead.cursor)).fullReload, false);
  await sql('DELETE FROM store_marks');
  await sql('INSERT INTO store_marks VALUES ($1, activity_now())', ['0123456789abcdef']);
  assert.equal((await ann.socket.closed).code, 1012, 'the node has found it out');
  const { hello } = await scene.online(ann.actor);
  assert.notEqual(hello.storeEpoch, ann.socket.hello.storeEpoch, 'another life of the store');
  const restored = await sync(ann.actor, cursor);
  assert.equal(restored.fullReload, true);
  assert.notEqual(restored.cursor.split('.')[3], mark);
  assert.equal((await sync(ann.actor, restored.cursor)).fullReload, false);
});

test('a store that another server took over leads another life', async () => {
  const ann = await scene.person();
  // As on a standby that was promoted: its timeline is another one.
  await sql(`UPDATE store_clock SET place = 'elsewhere'`);
  assert.equal((await ann.socket.closed).code, 1012);
  const { hello } = await scene.online(ann.actor);
  assert.notEqual(hello.storeEpoch, ann.socket.hello.storeEpoch);
});
