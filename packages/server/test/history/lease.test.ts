import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSink } from '../../src/features/storage/sink.ts';
import type { SinkOptions } from '../../src/features/storage/sink.ts';
import { openHistory } from '../../src/platform/history/open.ts';
import { HistoryError } from '../../src/platform/history/port.ts';
import type { History } from '../../src/platform/history/port.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { createVault, loadMasterKey } from '../../src/platform/secrets.ts';
import { StandingTime } from '../support/time.ts';
import { setUp, use, useService } from '../support/use.ts';
import { startHistoryReceiver } from './servers.ts';
import { depsOf, eventually, fill, openStorage } from './world.ts';
import type { StorageWorld } from './world.ts';

/** Two processes that both believe to be the one writer of an environment's database: what each may still do. */

// The sinks are those of this file.
const { service, scene, server, db, sql } = useService({ env: { CHAT_ROLES: 'api,gateway' } });
const receiver = use(startHistoryReceiver, (r) => r.close());
let storage: StorageWorld;
let vault: SinkOptions['vault'];
let env: { no: number; id: string };

setUp(async () => {
  vault = createVault(await loadMasterKey(undefined, service.dataDir, false));
  storage = await openStorage(service, db);
  const { body } = await storage.api('PUT', '/v1/storage/database/a', { url: receiver.url });
  receiver.secret = body.signingSecret as string;
  assert.equal((await storage.api('POST', '/v1/storage/database/test', {})).body.ok, true);
  [env] = (await sql(`SELECT no, id FROM environments WHERE id = 'env_dev'`)) as [typeof env];
});

/**
 * A process with a sink. It stops before its `gate`-th write, counted from 1, until `open()`. With `dice` its database is away, and
 * what it draws is given.
 */
async function worker(node: string, gate = 0, dice?: number) {
  const time = new StandingTime();
  const history = await openHistory({ url: receiver.url, secrets: [receiver.secret] }, depsOf(env.id));
  let writes = 0;
  let waits = (): void => undefined;
  const waiting = new Promise<void>((resolve) => (waits = resolve));
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  const gated: History = {
    ...history,
    write: async (records, options) => {
      if (dice !== undefined) throw new HistoryError('unreachable', 'ECONNREFUSED');
      if (++writes === gate) {
        waits();
        await opened;
      }
      await history.write(records, options);
    },
  };
  const sink = createSink({
    db,
    clock: time,
    timers: time.timers,
    logger: createLogger('silent'),
    random: () => dice ?? 0,
    node,
    vault,
    alarmingBacklog: 1_000_000,
    tell: () => Promise.resolve(),
    counted: () => undefined,
    connections: { open: () => Promise.resolve(gated), drop: () => undefined } as never,
    retentionMs: () => Promise.resolve(86_400_000),
  });
  return { time, waiting, open, writes: () => writes, turn: () => sink.turn(env) };
}

const row = async () =>
  (
    await sql(
      `SELECT owner, copy, extract(epoch FROM owned_until - clock_timestamp())::float8 AS left FROM storage WHERE env = $1`,
      [env.no],
    )
  )[0]!;
/** As if the process had been silent for longer than it may. */
const lapse = () =>
  sql(`UPDATE storage SET owned_until = clock_timestamp() - interval '1 second' WHERE env = $1`, [env.no]);

test('a slow process that lost its lease confirms nothing, and writes nothing new', async () => {
  const { id: cid } = await scene.group(await scene.actor(), []);
  await fill(db, cid, 1_500);
  assert.equal((await storage.api('PATCH', '/v1/storage', { mode: 'byo_db' })).status, 200);
  const slow = await worker('slow', 1);
  const turn = slow.turn();
  await slow.waiting;
  assert.equal((await row())['owner'], 'slow');
  const other = await worker('other', 4);
  assert.equal(await other.turn(), false);
  assert.equal(other.writes(), 0, 'the lease is held');

  // It is renewed for as long as the work takes.
  await sql(`UPDATE storage SET owned_until = clock_timestamp() + interval '1 second' WHERE env = $1`, [
    env.no,
  ]);
  slow.time.advance(3_000);
  await eventually(async () => (await row())['left'] > 2, 'the lease is renewed');

  await lapse();
  const rest = other.turn();
  await other.waiting;
  const copied = async () => (await row())['copy']?.done as number;
  await eventually(async () => (await copied()) >= 900, 'the other process goes on');
  const before = await copied();
  slow.open();
  assert.equal(await turn, false);
  assert.deepEqual([(await row())['owner'], await copied()], ['other', before], 'it is as the other left it');
  // The first batch is two writes: messages, and the conversation. The second is under way with it, and the third is begun when the first is written.
  assert.ok(slow.writes() <= 4, 'no further than what was under way');
  other.open();
  await rest;
  for (let turns = 0; turns < 10 && (await row())['copy'] !== null; turns++) await other.turn();
  assert.equal((await row())['copy'], null);
  assert.equal(receiver.store.environments.get(env.id)!.message.size, 1_500);

  // Whoever knows that its time is over does not even begin.
  await scene.send(null, cid, { text: 'later' });
  const late = await worker('late');
  const begun = late.turn();
  late.time.advance(11_000);
  assert.equal(await begun, false);
  assert.equal(late.writes(), 0);
  await other.turn();
  assert.equal(receiver.store.environments.get(env.id)!.message.size, 1_501);
});

test('nobody is erased while a write of a process that did not let go may still come', async () => {
  const writer = await scene.actor();
  const { id: cid } = await scene.group(writer, []);
  await scene.send(writer, cid);
  const next = await worker('next');
  await next.turn();
  const names = () =>
    [...receiver.store.environments.get(env.id)!.message.values()].filter((m) => m['senderId'] === writer.id);
  assert.equal(names().length, 1);
  assert.equal((await server('DELETE', `/v1/users/${writer.id}`)).status, 204);
  await sql(`UPDATE storage SET owner = 'killed' WHERE env = $1`, [env.no]);
  await lapse();
  await next.turn();
  await next.turn();
  assert.equal(names().length, 1);
  assert.equal((await storage.record()).sink.erasures, 1);
  await sql(`UPDATE storage SET taken_at = taken_at - interval '61 seconds' WHERE env = $1`, [env.no]);
  await next.turn();
  assert.equal(names().length, 0);
  // After one that let go nobody waits.
  const { id } = await scene.actor();
  await server('DELETE', `/v1/users/${id}`);
  await (await worker('last')).turn();
  assert.equal((await storage.record()).sink.erasures, 0);
});

test('after failures it waits 1, 2, 4 … 60 s, or as little as half of it, and nothing that is old leaves', async () => {
  const writer = await scene.actor();
  const { id: cid } = await scene.group(writer, []);
  await scene.send(writer, cid, { text: 'waits' });
  await scene.send(writer, cid, { text: 'the newest' });
  await sql(
    `UPDATE messages SET created_at = created_at - interval '10 days' WHERE conv = (SELECT no FROM conversations WHERE id = $1)`,
    [cid],
  );
  await sql(`UPDATE storage SET failures = 0, pruned_at = '-infinity' WHERE env = $1`, [env.no]);
  const pauses: number[] = [];
  for (const dice of [1, 0, 1, 0, 1, 0, 1, 0, 1]) {
    await sql('UPDATE storage SET since = NULL WHERE env = $1', [env.no]);
    await (await worker('unlucky', 0, dice)).turn();
    const [row] = await sql(
      'SELECT extract(epoch FROM due_at - since)::float8 AS pause FROM storage WHERE env = $1',
      [env.no],
    );
    pauses.push(row!['pause'] as number);
  }
  assert.deepEqual(pauses, [1, 1, 4, 4, 16, 16, 60, 30, 60]);
  const { data } = (await server('GET', `/v1/conversations/${cid}/messages`)).body;
  assert.deepEqual(
    data.map((m: { text: string }) => m.text),
    ['the newest', 'waits'],
  );
  // Confirmed, and older than the buffer: now it may go.
  const lucky = await worker('lucky');
  await lucky.turn();
  await sql(`UPDATE storage SET pruned_at = '-infinity' WHERE env = $1`, [env.no]);
  await lucky.turn();
  const held = await sql(
    'SELECT m.text FROM messages m JOIN conversations c ON c.env = m.env AND c.no = m.conv WHERE c.id = $1 AND m.id IS NOT NULL',
    [cid],
  );
  assert.deepEqual(held, [{ text: 'the newest' }]);
});
