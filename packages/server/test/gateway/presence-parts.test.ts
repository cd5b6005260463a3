import assert from 'node:assert/strict';
import { test } from 'node:test';
import { realtime } from '@parley/protocol';
import { NodeBus } from '../../src/features/node-bus.ts';
import { MemoryBroker } from './memory-broker.ts';
import { LatestOnly } from '../../src/platform/flow/latest-only.ts';
import { createLogger } from '../../src/platform/logging.ts';
import type { Db } from '../../src/platform/postgres/db.ts';
import { memoryPresence } from '../../src/platform/presence/memory.ts';
import { Presence } from '../../src/realtime/presence.ts';
import type { LiveSession } from '../../src/realtime/local-user.ts';
import { localUser } from './local-user.ts';

/** Presence and who watches whom by themselves, with clock, store and look-ups in the test's hand (presence#grace, presence#watch). */

const logger = createLogger('silent');
const ticked = () => new Promise((resolve) => setImmediate(resolve));
const ref = { env: 1, user: 2 };

interface Asked {
  user: number;
  others: readonly number[];
  answer: (shared: number[]) => void;
}

/** `manual`: the test answers who shares a conversation with whom; otherwise all do. */
function setup(options: { manual?: boolean; storing?: () => Promise<unknown>; blockers?: number[] } = {}) {
  let at = 1_000_000;
  const clock = { now: () => at, monotonic: () => at, advance: (ms: number) => void (at += ms) };
  const asked: Asked[] = [];
  const written: { no: number; at: string }[][] = [];
  const query = async (text: string, values: any[]): Promise<unknown[]> => {
    if (text.startsWith('UPDATE')) {
      await options.storing?.();
      written.push(values[1].map((no: number, i: number) => ({ no, at: values[2][i] })));
      return values[1].map((no: number, i: number) => ({ no, userId: `u${no}`, lastSeenAt: values[2][i] }));
    }
    if (text.includes('FROM blocks')) return (options.blockers ?? []).map((usr) => ({ usr }));
    // By id or by number.
    const ids = (values[1] as (string | number)[]).map((one) => (typeof one === 'number' ? `u${one}` : one));
    return ids.map((id) => ({ no: Number(id.slice(1)), userId: id, lastSeenAt: null }));
  };
  const registry = memoryPresence({ clock, node: 'n', graceMs: realtime.presenceGraceMs });
  const presence = new Presence({
    registry,
    bus: new NodeBus(new MemoryBroker().bus()),
    clock,
    logger,
    db: { query } as unknown as Db,
    sharing: (_env, no, others) =>
      options.manual
        ? new Promise((resolve) =>
            asked.push({ user: no, others, answer: (shared) => resolve(new Set(shared)) }),
          )
        : Promise.resolve(new Set(others)),
  });
  const watcher = (no = 1) => {
    const got: any[] = [];
    const send = (frame: Buffer) => got.push(JSON.parse(frame.subarray(2).toString()).d);
    const session = { user: localUser(no), state: 'live', send } as unknown as LiveSession;
    return { session, got };
  };
  return { presence, watching: presence.watching, registry, clock, watcher, asked, written };
}
const idsOf = (items: { userId: string }[]) => items.map((item) => item.userId);

test('presence#grace: offline is settled once, at the end of the grace period, with the time of the closing', async () => {
  const { presence, watching, clock, watcher, written } = setup();
  const { session, got } = watcher();
  await watching.watch(session, ['u2']);
  await presence.opened(ref, 's1', null);
  presence.cameOnline(2, { userId: 'u2', lastSeenAt: null });
  await presence.closed(ref, 's1');
  const lastSeenAt = new Date(clock.now()).toISOString();
  clock.advance(realtime.presenceGraceMs - 1);
  presence.tick();
  await ticked();
  assert.equal(got.length, 1);
  clock.advance(1);
  presence.tick();
  presence.tick();
  await ticked();
  assert.deepEqual(got, [
    { userId: 'u2', online: true, lastSeenAt: null },
    { userId: 'u2', online: false, lastSeenAt },
  ]);
  assert.deepEqual(written, [[{ no: 2, at: lastSeenAt }]]);
});

test('presence#grace: who comes back while the end is being stored is online to watchers in the end', async () => {
  const stored = Promise.withResolvers<void>();
  const { presence, watching, clock, watcher } = setup({ storing: () => stored.promise });
  const { session, got } = watcher();
  await watching.watch(session, ['u2']);
  await presence.opened(ref, 's1', null);
  await presence.closed(ref, 's1');
  clock.advance(realtime.presenceGraceMs);
  presence.tick();
  await ticked();
  const { cameOnline } = await presence.opened(ref, 's2', null);
  assert.ok(cameOnline);
  presence.cameOnline(2, { userId: 'u2', lastSeenAt: null });
  stored.resolve();
  await ticked();
  assert.equal(got.at(-1).online, true);
});

test('docs/cluster.md: when Redis is back, watchers are told what they do not know: who is online at once, the others after five seconds', async () => {
  const { presence, watching, registry, clock, watcher } = setup();
  const { session, got } = watcher();
  await presence.opened({ env: 1, user: 5 }, 's5', null);
  await watching.watch(session, ['u2', 'u3', 'u5']);
  await presence.closed({ env: 1, user: 5 }, 's5');
  clock.advance(realtime.presenceGraceMs);
  await registry.endGrace({ env: 1, user: 5 });
  // Another node announced it meanwhile, and nobody here heard it.
  await presence.opened(ref, 's1', null);
  presence.restored();
  await ticked();
  assert.deepEqual(got, [{ userId: 'u2', online: true, lastSeenAt: null }]);
  clock.advance(4_999);
  presence.tick();
  await ticked();
  assert.equal(got.length, 1);
  clock.advance(1);
  presence.tick();
  presence.tick();
  await ticked();
  assert.deepEqual(
    got.slice(1),
    [{ userId: 'u5', online: false, lastSeenAt: null }],
    'not of u3, who was offline',
  );
  // An announcement that arrives after the look says nothing new.
  presence.cameOnline(2, { userId: 'u2', lastSeenAt: null });
  assert.equal(got.length, 2);
  // Another watcher was told meanwhile that the user is offline, by a node that could not ask Redis.
  registry.online = (refs) => Promise.resolve(refs.map(() => false));
  const other = watcher(4);
  await watching.watch(other.session, ['u2', 'u3']);
  presence.restored();
  await ticked();
  for (const all of [got.slice(2), other.got])
    assert.deepEqual(all, [{ userId: 'u2', online: true, lastSeenAt: null }], 'all are told again');
});

test('blocks#presence, docs/cluster.md: when Redis is back, nobody goes on watching who blocked them, or left them, meanwhile', async () => {
  const blockers: number[] = [];
  const { presence, watching, watcher, asked } = setup({ manual: true, blockers });
  const { session, got } = watcher();
  const watch = watching.watch(session, ['u2', 'u3', 'u4']);
  await ticked();
  asked.shift()!.answer([2, 3, 4]);
  await watch;
  // Nobody here heard of it.
  blockers.push(2);
  presence.restored();
  for (const no of [2, 3, 4]) presence.cameOnline(no, { userId: `u${no}`, lastSeenAt: null });
  await ticked();
  assert.deepEqual(got, [], 'not before it is known');
  asked.shift()!.answer([2, 4]);
  await ticked();
  assert.deepEqual(idsOf(got), ['u4']);
  assert.deepEqual([...session.watching!], [4]);
});

test('presence#grace: users whose grace periods end together, and those left at shutdown, are few statements', async () => {
  const { presence, clock, written } = setup();
  for (let no = 1; no <= 1_200; no++) {
    await presence.opened({ env: 1, user: no }, `s${no}`, null);
    await presence.closed({ env: 1, user: no }, `s${no}`);
    if (no === 600) clock.advance(10_000);
  }
  clock.advance(realtime.presenceGraceMs - 10_000);
  presence.tick();
  await ticked();
  assert.deepEqual(
    written.map((rows) => rows.length),
    [500, 100],
  );
  await presence.drained();
  assert.deepEqual(
    written.slice(2).map((rows) => rows.length),
    [500, 100],
  );
  assert.equal(new Set(written.flat().map(({ no }) => no)).size, 1_200);
});

test('presence#watch-replaced: a socket that closes while its watch set is being read watches nobody', async () => {
  const { presence, watching, watcher, asked } = setup({ manual: true });
  const { session, got } = watcher();
  const answer = watching.watch(session, ['u2']);
  const waiting = watching.watch(session, ['u3']);
  await ticked();
  session.state = 'closed';
  watching.end(session);
  asked[0]!.answer([2]);
  await answer;
  assert.deepEqual(await waiting, []);
  await presence.opened(ref, 's1', null);
  presence.cameOnline(2, { userId: 'u2', lastSeenAt: null });
  assert.deepEqual(got, []);
  assert.equal(asked.length, 1, 'nothing more was looked up');
});

test('presence#watch-replaced: one watch of a session at a time; the newest that waits takes the place of the others, which are answered with it', async () => {
  const { watching, watcher, asked } = setup({ manual: true });
  const { session } = watcher();
  const requests = [['u2'], ['u3'], ['u4', 'u5'], ['u5', 'u6']].map((ids) => watching.watch(session, ids));
  await ticked();
  assert.deepEqual(
    asked.map((a) => a.others),
    [[2]],
  );
  asked[0]!.answer([2]);
  assert.deepEqual(idsOf(await requests[0]!), ['u2']);
  assert.deepEqual([...session.watching!], [2]);
  await ticked();
  assert.deepEqual(
    asked.map((a) => a.others),
    [[2], [5, 6]],
  );
  asked[1]!.answer([5, 6]);
  assert.deepEqual(
    (await Promise.all(requests)).map(idsOf),
    [['u2'], [], ['u5'], ['u5', 'u6']],
    'of the users that they asked for, those that are watched now',
  );
  assert.deepEqual([...session.watching!], [5, 6]);
});

test('presence#watch-replaced: while a watch set is looked at again nothing leaves; then only what may still be seen', async () => {
  const { watching, watcher, asked } = setup({ manual: true });
  const { session, got } = watcher();
  const answer = watching.watch(session, ['u2', 'u3']);
  await ticked();
  asked[0]!.answer([2, 3]);
  await answer;
  watching.left(1, [session]);
  watching.announced(2, '{"d":"two"}');
  watching.announced(3, '{"d":"three, before"}');
  watching.announced(3, '{"d":"three"}');
  assert.deepEqual(got, []);
  await ticked();
  asked[1]!.answer([3]);
  await ticked();
  assert.deepEqual(got, ['three']);
  watching.announced(3, '{"d":"three again"}');
  watching.announced(2, '{"d":"two again"}');
  assert.deepEqual(got, ['three', 'three again']);
});

test('many memberships that end at once are one look at each session’s set, and what ends meanwhile one more', async () => {
  const { watching, watcher, asked } = setup({ manual: true });
  const members = Array.from({ length: 50 }, (_, i) => watcher(i + 1));
  const ids = members.map(({ session }) => session.user!.id);
  const answers = members.map(({ session }) => watching.watch(session, ids));
  await ticked();
  for (const { answer, others } of asked.splice(0)) answer([...others]);
  await Promise.all(answers);
  // Their conversation is deleted: everybody leaves, in one go.
  const everybodyLeaves = () => {
    for (const { session } of members) watching.left(session.user!.no, [session]);
  };
  everybodyLeaves();
  await ticked();
  assert.equal(asked.length, 50, 'one for each session');
  assert.ok(asked.every(({ others }) => others.length === 49));
  for (let i = 0; i < 10; i++) everybodyLeaves();
  await ticked();
  assert.equal(asked.length, 50, 'nothing more while it is under way');
  for (const { answer, others } of asked.splice(0)) answer([...others]);
  await ticked();
  assert.equal(asked.length, 50, 'and one more afterwards');
  for (const { answer } of asked.splice(0)) answer([]);
  await ticked();
  for (const { session } of members) assert.deepEqual([...session.watching!], [session.user!.no]);
});

test('presence#watch-replaced: who leaves while a watch set is being looked up is looked at again', async () => {
  const { watching, watcher, asked } = setup({ manual: true });
  const { session } = watcher();
  const answer = watching.watch(session, ['u2', 'u3']);
  await ticked();
  watching.left(3, []);
  asked[0]!.answer([2, 3]);
  await answer;
  await ticked();
  assert.deepEqual(asked[1]!.others, [3]);
  asked[1]!.answer([]);
  await ticked();
  assert.deepEqual([...session.watching!], [2]);
});

test('LatestOnly: one at a time, the newest next, and a failure holds nobody up', async () => {
  const begun: number[] = [];
  const ends: { resolve: (value: string) => void; reject: (error: Error) => void }[] = [];
  const latest = new LatestOnly<number, string>((input) => {
    begun.push(input);
    return new Promise((resolve, reject) => ends.push({ resolve, reject }));
  });
  const [one, two, three] = [latest.run(1), latest.run(2), latest.run(3)];
  assert.deepEqual(begun, [1]);
  ends[0]!.reject(new Error('no'));
  await assert.rejects(one, /no/);
  await ticked();
  assert.deepEqual(begun, [1, 3]);
  ends[1]!.resolve('three');
  assert.deepEqual(await Promise.all([two, three]), ['three', 'three']);
  await ticked();
  const four = latest.run(4);
  assert.deepEqual(begun, [1, 3, 4]);
  ends[2]!.resolve('four');
  assert.equal(await four, 'four');
});
