import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NodeBus } from '../../src/features/node-bus.ts';
import type { LogEvent } from '../../src/log/events.ts';
import { MemoryBroker } from './memory-broker.ts';
import type { Membership } from '../../src/realtime/registry.ts';
import { cid, deferred, event, seqs, settled, setup } from './hub-tools.ts';

/** Which events a user of a route gets: joins, removals and logins that come late or out of order. */

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
