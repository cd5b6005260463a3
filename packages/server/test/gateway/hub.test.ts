import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EventName } from '@parley/protocol';
import { NodeBus } from '../../src/features/node-bus.ts';
import type { LogEvent } from '../../src/log/events.ts';
import { eventFrame } from '../../src/log/events.ts';
import { MemoryBroker } from './memory-broker.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { Hub } from '../../src/realtime/hub.ts';
import type { Membership } from '../../src/realtime/registry.ts';
import type { Session } from '../../src/transport/gateway/session.ts';
import { StandingTime } from '../support/time.ts';
import { seed } from '../../../../scripts/seed.ts';

/** Order and routes on one node (sdk#gap, events#delivery-order). */

const logger = createLogger('silent');
const cid = 'conv_1';

interface Probe extends Session {
  got: any[];
}
const probe = (): Probe => {
  const got: any[] = [];
  const send = (frame: Buffer) => got.push(JSON.parse(frame.subarray(frame[1] === 126 ? 4 : 2).toString()));
  return { got, send } as unknown as Probe;
};
const seqs = (p: Probe) => p.got.filter((f) => f.t === 'event').map((f) => f.seq);

function event(
  seq: number,
  routes: { join?: number[]; leave?: number[] } = {},
  e: EventName = 'message.new',
): LogEvent {
  return { env: 1, conv: 1, cid, seq, e, frame: eventFrame(cid, seq, e, {}), ...routes };
}

function setup(
  options: {
    memberships?: (user: number) => Promise<Membership[]>;
    missed?: (after: number) => Promise<LogEvent[] | null>;
    bus?: NodeBus;
    onLeave?: (user: number) => void;
  } = {},
) {
  const time = new StandingTime();
  const hub = new Hub({
    timers: time.timers,
    bus: options.bus ?? new NodeBus(new MemoryBroker().bus()),
    logger,
    memberships: (_env, user) => options.memberships?.(user) ?? Promise.resolve([{ cid, lastSeq: 0 }]),
    missed: (_env, _cid, after) => options.missed?.(after) ?? Promise.resolve([]),
    onLeave: (user) => options.onLeave?.(user),
  });
  return {
    hub,
    time,
    async join(user = 1): Promise<Probe> {
      const session = probe();
      await hub.registry.attach(session, 1, user, `user-${user}`);
      return session;
    },
  };
}

const deferred = <T>() => Promise.withResolvers<T>();

test('events go out in seq order, however they come', async () => {
  const { hub, join } = setup();
  const session = await join();
  for (const seq of [1, 3, 2, 5, 4, 4, 3, 6]) hub.publish(event(seq));
  assert.deepEqual(seqs(session), [1, 2, 3, 4, 5, 6]);
});

test('random orders with duplicates from two sources: each event once, in order', async () => {
  let state = seed('order of events');
  const random = (below: number) => (state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff) % below;
  for (let round = 0; round < 50; round++) {
    const { hub, join } = setup();
    const session = await join();
    const all = Array.from({ length: 100 }, (_, i) => i + 1).flatMap((seq) => [seq, seq]);
    for (let i = all.length - 1; i > 0; i--) {
      const j = random(i + 1);
      [all[i], all[j]] = [all[j]!, all[i]!];
    }
    for (const seq of all) random(2) ? hub.publish(event(seq)) : hub.received(event(seq));
    assert.deepEqual(
      seqs(session),
      Array.from({ length: 100 }, (_, i) => i + 1),
    );
  }
});

test('an event that is late by 250 ms is read from the store, and dropped when it comes', async () => {
  const asked: number[] = [];
  const { hub, join, time } = setup({
    missed: (after) => {
      asked.push(after);
      return Promise.resolve([2, 3].map((seq) => event(seq)));
    },
  });
  const session = await join();
  for (const seq of [1, 5, 4]) hub.publish(event(seq));
  await time.pass(249);
  assert.deepEqual([seqs(session), asked], [[1], []]);
  await time.pass(1);
  assert.deepEqual([seqs(session), asked], [[1, 2, 3, 4, 5], [1]]);
  for (const seq of [2, 6]) hub.publish(event(seq));
  assert.deepEqual(seqs(session), [1, 2, 3, 4, 5, 6]);
});

test('sdk#gap: where the store does not tell what is late, the later events go out, and the late one is dropped', async () => {
  const never = new Promise<never>(() => undefined);
  for (const missed of [() => Promise.resolve(null), () => Promise.reject(new Error('away')), () => never]) {
    const { hub, join, time } = setup({ missed });
    const session = await join();
    for (const seq of [1, 4, 3]) hub.publish(event(seq));
    await time.pass(250);
    await time.pass(1_000);
    assert.deepEqual(seqs(session), [1, 3, 4]);
    for (const seq of [2, 5]) hub.publish(event(seq));
    assert.deepEqual(seqs(session), [1, 3, 4, 5]);
  }
});

test('a late event that comes while it is read goes out once', async () => {
  const read = deferred<LogEvent[]>();
  const { hub, join, time } = setup({ missed: () => read.promise });
  const session = await join();
  for (const seq of [1, 3]) hub.publish(event(seq));
  await time.pass(250);
  for (const seq of [2, 5]) hub.publish(event(seq));
  assert.deepEqual(seqs(session), [1, 2, 3]);
  read.resolve([2, 3, 4, 5].map((seq) => event(seq)));
  await time.pass(0);
  assert.deepEqual(seqs(session), [1, 2, 3, 4, 5]);
});

test('at most 16 routes of an environment and 32 in all read a late event at a time; clients of the others read it', async () => {
  const places = Array.from({ length: 40 }, (_, i) => `conv_${i}`);
  let asked = 0;
  const { hub, join, time } = setup({
    memberships: () => Promise.resolve(places.map((cid) => ({ cid, lastSeq: 0 }))),
    missed: () => {
      asked++;
      return new Promise(() => undefined);
    },
  });
  const session = await join();
  const late = (env: number, from: number, to: number): void => {
    for (const cid of places.slice(from, to)) hub.publish({ ...event(2), cid, env });
  };
  late(1, 0, 20);
  late(2, 20, 25);
  await time.pass(250);
  assert.deepEqual([asked, seqs(session).length], [16 + 5, 4]);
  late(3, 25, 40);
  await time.pass(250);
  assert.deepEqual([asked, seqs(session).length], [32, 4 + 4]);
  await time.pass(1_000);
  assert.deepEqual([asked, seqs(session).length], [32, 40]);
});

test('each gap has its own 250 ms', async () => {
  const { hub, join, time } = setup();
  const session = await join();
  hub.publish(event(2));
  time.advance(200);
  hub.publish(event(1));
  hub.publish(event(4));
  time.advance(200);
  assert.deepEqual(seqs(session), [1, 2], 'the timer of the gap that was filled does not count');
  hub.publish(event(3));
  assert.deepEqual(seqs(session), [1, 2, 3, 4]);
});

test('what is held is bounded: past 200 it goes out at once', async () => {
  const { hub, join } = setup();
  const session = await join();
  for (let seq = 2; seq <= 201; seq++) hub.publish(event(seq));
  assert.deepEqual(seqs(session), []);
  hub.publish(event(202));
  assert.equal(seqs(session).length, 201);
});

test('a removed user gets its own member.removed and nothing after; the others go on', async () => {
  const left: number[] = [];
  const { hub, join } = setup({ onLeave: (user) => left.push(user) });
  const [stays, goes] = [await join(1), await join(2)];
  hub.publish(event(1));
  hub.publish(event(2, { leave: [2, 77] }, 'member.removed'));
  hub.publish(event(3));
  assert.deepEqual(seqs(stays), [1, 2, 3]);
  assert.deepEqual(seqs(goes), [1, 2]);
  assert.deepEqual(left, [2, 77], 'told of users without a socket too');
  assert.equal(hub.isMember(goes.user!, cid), false);
});

test('an early event of after the removal does not slip out with it', async () => {
  const { hub, join } = setup();
  const [stays, goes] = [await join(1), await join(2)];
  hub.publish(event(3));
  hub.publish(event(2, { leave: [2] }, 'member.removed'));
  hub.publish(event(1));
  assert.deepEqual(seqs(stays), [1, 2, 3]);
  assert.deepEqual(seqs(goes), [1, 2]);
});

test('removed and added again, out of order and as the only one: the user hears what follows', async () => {
  const { hub, join } = setup();
  const session = await join(2);
  hub.publish(event(3, { join: [2] }, 'member.added'));
  hub.publish(event(4));
  hub.publish(event(2, { leave: [2] }, 'member.removed'));
  hub.publish(event(1));
  hub.publish(event(5));
  assert.deepEqual(seqs(session), [1, 2, 3, 4, 5]);
  assert.equal(hub.registry.routes.size, 1);
});

test('a deleted conversation leaves no route behind; a revived one makes it anew', async () => {
  const { hub, join } = setup();
  const session = await join(1);
  hub.publish(event(1, {}, 'conversation.deleted'));
  assert.equal(hub.registry.routes.size, 0);
  hub.publish(event(2, { join: [1] }, 'conversation.created'));
  hub.publish(event(3));
  assert.deepEqual(seqs(session), [1, 2, 3]);
});

test('nothing is left when the last session goes', async () => {
  const { hub, join } = setup();
  const [one, two, other] = [await join(1), await join(1), await join(2)];
  hub.registry.detach(one!);
  hub.publish(event(1));
  assert.deepEqual([seqs(one!), seqs(two!), seqs(other!)], [[], [1], [1]]);
  hub.registry.detach(two!);
  assert.equal(hub.registry.routes.size, 1);
  hub.registry.detach(other!);
  hub.registry.detach(other!);
  assert.deepEqual([hub.registry.routes.size, hub.registry.users.size], [0, 0]);
  hub.publish(event(2));
});

test('memberships that change while they are being read count as they are now', async () => {
  const reading = deferred<Membership[]>();
  const { hub, join } = setup({ memberships: () => reading.promise });
  const joining = join(1);
  hub.publish({ ...event(5, { leave: [1] }, 'member.removed'), cid: 'conv_left' });
  hub.publish({
    ...event(7, { join: [1] }, 'member.added'),
    cid: 'conv_new',
    frame: eventFrame('conv_new', 7, 'member.added', {}),
  });
  hub.publish({ ...event(2, { leave: [1] }, 'member.removed'), cid: 'conv_back' });
  hub.publish({ ...event(3, { join: [1] }, 'member.added'), cid: 'conv_back' });
  reading.resolve([
    { cid: 'conv_left', lastSeq: 4 },
    { cid: 'conv_back', lastSeq: 1 },
    { cid, lastSeq: 0 },
  ]);
  const session = await joining;
  assert.deepEqual(
    ['conv_left', 'conv_new', 'conv_back', cid].map((c) => hub.isMember(session.user!, c)),
    [false, true, true, true],
  );
});

test('a session that goes while its memberships are being read leaves nothing behind', async () => {
  const reading = deferred<Membership[]>();
  const { hub } = setup({ memberships: () => reading.promise });
  const session = probe();
  const attaching = hub.registry.attach(session, 1, 1, 'user-1');
  hub.registry.detach(session);
  reading.resolve([{ cid, lastSeq: 0 }]);
  await attaching;
  assert.deepEqual([hub.registry.routes.size, hub.registry.users.size], [0, 0]);
});

test('a login that failed does not make the next one deaf', async () => {
  let fail = true;
  const { hub, join } = setup({
    memberships: () =>
      fail ? Promise.reject(new Error('store away')) : Promise.resolve([{ cid, lastSeq: 0 }]),
  });
  const failing = probe();
  await assert.rejects(hub.registry.attach(failing, 1, 1, 'user-1'), /store away/);
  fail = false;
  const session = await join(1);
  hub.registry.detach(failing);
  hub.publish(event(1));
  assert.deepEqual(seqs(session), [1]);
  assert.deepEqual(seqs(failing), []);
});

test('a relayed frame goes to all members but one', async () => {
  const { hub, join } = setup();
  const [one, two] = [await join(1), await join(2)];
  hub.ephemeral.relay(cid, '{"t":"typing","d":{}}', 1);
  hub.ephemeral.relayHere(cid, '{"t":"receipt","d":{}}', null);
  hub.ephemeral.relayHere(cid, '{"t":"typing","d":{}}', 2);
  hub.ephemeral.relayHere('conv_unknown', '{"t":"receipt","d":{}}', null);
  assert.deepEqual(
    one!.got.map((f) => f.t),
    ['receipt', 'typing'],
  );
  assert.deepEqual(
    two!.got.map((f) => f.t),
    ['typing', 'receipt'],
  );
});

/** Two nodes in one process. */
function pair(missed: (after: number) => Promise<LogEvent[] | null> = () => Promise.resolve([])) {
  const broker = new MemoryBroker();
  const nodes = [0, 1].map(() =>
    setup({ bus: new NodeBus(broker.bus()), missed, memberships: () => Promise.resolve([]) }),
  );
  return nodes as [(typeof nodes)[0], (typeof nodes)[0]];
}
const settled = () => new Promise((resolve) => setImmediate(resolve));

test('an event of another node arrives once, though it comes by two ways', async () => {
  const [a, b] = pair();
  const session = await b.join(2);
  a.hub.publish(event(1, { join: [2] }, 'conversation.created'));
  await settled();
  a.hub.publish(event(2));
  a.hub.ephemeral.relay(cid, '{"t":"typing","d":{}}', null);
  a.hub.publish(event(3, { leave: [2] }, 'member.removed'));
  a.hub.publish(event(4));
  await settled();
  assert.deepEqual(
    session.got.map((f) => f.seq ?? f.t),
    [1, 2, 'typing', 3],
  );
});

test('what was committed while the node was not listening yet is read from the store', async () => {
  const [a, b] = pair((after) => Promise.resolve([event(after + 1), event(after + 2)]));
  const session = await b.join(2);
  a.hub.publish(event(4, { join: [2] }, 'member.added'));
  await settled();
  a.hub.publish(event(7));
  await settled();
  assert.deepEqual(seqs(session), [4, 5, 6, 7]);
});

test('a removal that is read from the store ends the route as one from the bus does', async () => {
  const [a, b] = pair(() => Promise.resolve([event(5, { leave: [2] }, 'member.removed')]));
  const session = await b.join(2);
  a.hub.publish(event(4, { join: [2] }, 'member.added'));
  await settled();
  b.hub.received(event(5, { leave: [2] }, 'member.removed'));
  a.hub.publish(event(6));
  await settled();
  assert.deepEqual(seqs(session), [4, 5]);
  assert.equal(b.hub.registry.routes.size, 0);
});

test('events#resync-required: too much to catch up, or a store that does not answer: resync_required { cid }', async () => {
  for (const missed of [() => Promise.resolve(null), () => Promise.reject(new Error('store away'))]) {
    const [a, b] = pair(missed);
    const session = await b.join(2);
    a.hub.publish(event(4, { join: [2] }, 'member.added'));
    await settled();
    assert.deepEqual(session.got.at(-1), { t: 'resync_required', d: { cid } });
    a.hub.publish(event(5));
    await settled();
    assert.deepEqual(seqs(session), [4, 5]);
  }
});

test('a login waits until its conversations are listened to, even when another login began that', async () => {
  const listening = deferred<void>();
  const bus = new MemoryBroker().bus();
  bus.subscribe = async (channels) => {
    if (channels.includes(`c:${cid}`)) await listening.promise;
  };
  const { join } = setup({ bus: new NodeBus(bus) });
  const states: string[] = [];
  const logins = [1, 2].map((user) => join(user).then(() => states.push(`user ${user}`)));
  await settled();
  assert.deepEqual(states, []);
  listening.resolve();
  await Promise.all(logins);
});

test('a frame to users reaches each of their sockets once, on a node that is alone too, and only in their environment', async () => {
  const { hub, join } = setup();
  const [first, again, other] = [await join(1), await join(1), await join(2)];
  hub.ephemeral.toUsers(1, [1, 1, 7], '{"t":"hb","d":{}}');
  hub.ephemeral.toUsers(2, [1], '{"t":"hb","d":{}}');
  assert.deepEqual([first.got.length, again.got.length, other.got.length], [1, 1, 0]);
});

test('a member whose join came after later events is found in the store, and told to sync', async () => {
  let isMember = false;
  const { hub, time, join } = setup({
    memberships: (user) =>
      Promise.resolve(user === 1 || isMember ? [{ cid, lastSeq: isMember ? 3 : 0 }] : []),
  });
  const [first, second] = [await join(1), await join(2)];
  for (const seq of [1, 3]) hub.publish(event(seq));
  await time.pass(250);
  isMember = true;
  hub.publish(event(2, { join: [2] }, 'member.added'));
  await time.pass(250);
  assert.deepEqual(
    second.got.map((f) => f.t),
    ['resync_hint'],
  );
  hub.publish(event(4));
  assert.deepEqual([seqs(first), seqs(second)], [[1, 3, 4], [4]]);
});

test('no route is left by a join that was held while its user disconnected', async () => {
  const between = deferred<LogEvent[]>();
  const broker = new MemoryBroker();
  broker.bus();
  const { hub, join } = setup({
    bus: new NodeBus(broker.bus()),
    memberships: () => Promise.resolve([]),
    missed: (after) => (after === 1 ? Promise.resolve([]) : between.promise),
  });
  const session = await join();
  hub.publish(event(1, { join: [1] }, 'member.added'));
  hub.publish(event(2, { leave: [1] }, 'member.removed'));
  hub.publish(event(4, { join: [1] }, 'member.added'));
  assert.deepEqual(seqs(session), [1, 2]);
  assert.equal(hub.registry.routes.size, 1);
  hub.registry.detach(session);
  between.resolve([event(3), event(4, { join: [1] }, 'member.added')]);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(hub.registry.routes.size, 0);
});

test('events#membership-bounds: a removal that comes after later events still ends the membership', async () => {
  const left: number[] = [];
  const { hub, join, time } = setup({
    missed: () => Promise.reject(new Error('away')),
    onLeave: (user) => left.push(user),
  });
  const [stays, goes] = [await join(1), await join(2)];
  for (const seq of [1, 3]) hub.publish(event(seq));
  await time.pass(250);
  hub.publish(event(2, { leave: [2] }, 'member.removed'));
  hub.publish(event(4));
  assert.deepEqual(
    [seqs(stays), seqs(goes)],
    [
      [1, 3, 4],
      [1, 3],
    ],
  );
  assert.deepEqual(left, [2]);
});

test('events#membership-bounds: a removal that comes late does not end a later membership', async () => {
  const { hub, join, time } = setup({ missed: () => Promise.reject(new Error('away')) });
  const [, back] = [await join(1), await join(2)];
  for (const seq of [1, 5]) hub.publish(event(seq));
  await time.pass(250);
  hub.publish(event(3, { join: [2] }, 'member.added'));
  hub.publish(event(2, { leave: [2] }, 'member.removed'));
  hub.publish(event(6));
  assert.deepEqual(seqs(back), [1, 5, 6]);
});

test('events#membership-bounds: a removal from before the memberships were read leaves a member in', async () => {
  const reading = deferred<Membership[]>();
  const { hub, join } = setup({
    memberships: (user) => (user === 1 ? Promise.resolve([{ cid, lastSeq: 7 }]) : reading.promise),
  });
  await join(1);
  const joining = join(2);
  hub.received(event(5, { leave: [2] }, 'member.removed'));
  reading.resolve([{ cid, lastSeq: 7 }]);
  const session = await joining;
  hub.publish(event(8));
  assert.deepEqual(seqs(session), [8]);
});

test('events#membership-bounds: who connects while events are late gets none from before its membership', async () => {
  const { hub, join } = setup({
    memberships: (user) => Promise.resolve([{ cid, lastSeq: user === 1 ? 1 : 4 }]),
  });
  const there = await join(1);
  // The store is at 4 already: the user was removed with 3, and added again with 4.
  const late = await join(2);
  hub.publish(event(2));
  hub.publish(event(3, { leave: [2] }, 'member.removed'));
  hub.publish(event(5));
  hub.publish(event(4, { join: [2] }, 'member.added'));
  assert.deepEqual([seqs(there), seqs(late)], [[2, 3, 4, 5], [5]]);
});

test('a membership that was missed while the user logged in is found by the next comparison', async () => {
  const reads = [deferred<Membership[]>(), deferred<Membership[]>()];
  let read = 0;
  const { hub, join, time } = setup({ memberships: () => reads[read++]!.promise });
  const joining = join(1);
  await settled();
  const caughtUp = hub.catchUp();
  reads[0]!.resolve([]);
  reads[1]!.resolve([{ cid, lastSeq: 3 }]);
  const session = await joining;
  await time.pass(250);
  await caughtUp;
  hub.publish(event(4));
  assert.deepEqual(seqs(session), [4]);
});

test('events#membership-bounds: a removal that never comes ends with the next comparison', async () => {
  let isMember = true;
  const left: number[] = [];
  const { hub, join, time } = setup({
    memberships: (user) => Promise.resolve(user === 1 || isMember ? [{ cid, lastSeq: 0 }] : []),
    missed: (after) => (after === 0 ? Promise.reject(new Error('away')) : Promise.resolve([])),
    onLeave: (user) => left.push(user),
  });
  const [stays, goes] = [await join(1), await join(2)];
  hub.publish(event(2));
  await time.pass(250);
  isMember = false;
  const caughtUp = hub.catchUp();
  await time.pass(250);
  await caughtUp;
  hub.publish(event(3));
  assert.deepEqual([seqs(stays), seqs(goes)], [[2, 3], [2]]);
  assert.deepEqual(left, [2]);
});

test('users are compared again until the store answers', async () => {
  for (const cause of ['a late join', 'a silent node']) {
    let asked = 0;
    const { hub, join, time } = setup({
      memberships: (user) => {
        if (user === 1) return Promise.resolve([{ cid, lastSeq: 0 }]);
        asked++;
        if (asked === 1) return Promise.resolve([]);
        return asked < 4 ? Promise.reject(new Error('away')) : Promise.resolve([{ cid, lastSeq: 3 }]);
      },
    });
    const [, session] = [await join(1), await join(2)];
    for (const seq of [1, 2, 3]) hub.publish(event(seq));
    if (cause === 'a late join') hub.publish(event(2, { join: [2] }, 'member.added'));
    else void hub.catchUp();
    await time.pass(5_000);
    hub.publish(event(4));
    assert.deepEqual([asked, session.got.map((f) => f.seq ?? f.t)], [4, ['resync_hint', 4]], cause);
    assert.deepEqual(time.waiting, [], 'then no more');
  }
});

test('a join that is held is not lost to another login that knows more', async () => {
  const listening = deferred<void>();
  let joins = 0;
  const broker = new MemoryBroker();
  broker.bus();
  const bus = broker.bus();
  bus.subscribe = async (channels) => {
    if (channels.includes(`c:${cid}`) && ++joins > 1) await listening.promise;
  };
  const stored: LogEvent[] = [];
  const { hub, join } = setup({
    bus: new NodeBus(bus),
    memberships: (user) => Promise.resolve(user === 2 ? [{ cid, lastSeq: 6 }] : []),
    missed: (after) => Promise.resolve(stored.filter(({ seq }) => seq > after)),
  });
  const session = await join(1);
  hub.received(event(1, { join: [1] }, 'member.added'));
  hub.received(event(2, { leave: [1] }, 'member.removed'));
  await settled();
  const back = event(5, { join: [1] }, 'member.added');
  stored.push(event(3), event(4), back, event(6));
  hub.received(back);
  const joining = join(2);
  await settled();
  listening.resolve();
  const other = await joining;
  hub.received(event(7));
  assert.deepEqual([seqs(session), seqs(other)], [[1, 2, 5, 6, 7], [7]]);
});
