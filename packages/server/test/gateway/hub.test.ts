import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NodeBus } from '../../src/features/node-bus.ts';
import { eventFrame } from '../../src/log/events.ts';
import { MemoryBroker } from './memory-broker.ts';
import type { Membership } from '../../src/realtime/registry.ts';
import { seed } from '../../../../scripts/seed.ts';
import { cid, deferred, event, pair, seqs, settled, setup, probe } from './hub-tools.ts';

/** Order and routes on one node (sdk#gap, events#delivery-order). */

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
