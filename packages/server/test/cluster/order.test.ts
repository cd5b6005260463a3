import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { socketEvents } from '@parley/protocol';
import { holdMs } from '../../src/realtime/recovery.ts';
import { assertContiguous, text } from '../gateway/live-scene.ts';
import type { Service } from '../support/service.ts';
import { createScene } from '../support/scene.ts';
import { useNodes } from './nodes.ts';

/** Events across nodes: events#delivery-order. */

const { cluster, scene, nodes } = useNodes([{}, {}]);
const [a, b] = nodes as [Service, Service];

const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

/** Senders on both nodes, REST and socket mixed: every socket gets every event once and in order. */
async function talkOverBoth(): Promise<void> {
  const people = await Promise.all(range(10).map(() => scene.actor()));
  const conv = await scene.group(null, people);
  const sockets = await Promise.all(people.map((p, i) => cluster.online(i % 2 ? b : a, p)));
  const servers = [a, b].map((node) => createScene(node.url));
  const perSender = 16;
  const sent = await Promise.all([
    ...people.map(async (person, i) => {
      // Over the node where its socket is not, every other time.
      const elsewhere = cluster.at(i % 2 ? a : b, person);
      const ids: string[] = [];
      for (const n of range(perSender))
        if (n % 2) ids.push((await sockets[i]!.request('message.send', text(conv.id, `${i} ${n}`))).id);
        else ids.push((await scene.send(elsewhere, conv.id, { text: `${i} ${n}` })).id);
      return ids;
    }),
    ...servers.map((server) =>
      Promise.all(range(60).map(async (n) => (await server.send(null, conv.id, { text: `s ${n}` })).id)),
    ),
  ]);
  const all = sent.flat();
  assert.equal(all.length, 10 * perSender + 120);
  const last = conv.lastSeq + all.length;
  for (const socket of sockets) {
    await socket.next((f) => f.t === 'event' && f.cid === conv.id && f.seq === last, `seq ${last}`);
    assertContiguous(socket, conv.id);
    const ids = socket.events(conv.id).flatMap((f) => f.d.message?.id ?? []);
    assert.deepEqual(new Set(ids), new Set(all));
  }
  // Each sender's own order was kept by the log, and all sockets saw the same.
  const seen = sockets.map((s) => s.events(conv.id).map((f) => f.d.message.text as string));
  for (const one of seen) assert.deepEqual(one, seen[0]);
  for (const i of people.keys())
    assert.deepEqual(
      seen[0]!.filter((t) => t.startsWith(`${i} `)),
      range(perSender).map((n) => `${i} ${n}`),
    );
}

test('events#delivery-order: senders on both nodes, REST and socket mixed: every socket gets every event once and in order', () =>
  talkOverBoth());

test('events#delivery-order: the same while the nodes stand still in turn, longer than a late event is waited for', async () => {
  let talking = true;
  const done = talkOverBoth().finally(() => (talking = false));
  for (let i = 0; talking; i++) {
    const { process } = [a, b][i % 2]!;
    process.kill('SIGSTOP');
    await delay(2 * holdMs);
    process.kill('SIGCONT');
    await delay(holdMs);
  }
  await done;
});

test('events#delivery-order: every type of event crosses to the other node', async () => {
  const [owner, member, guest] = await Promise.all([scene.actor(), scene.actor(), scene.actor()]);
  const watcher = await cluster.online(b, member);
  const conv = await scene.group(owner, [member]);
  const message = await scene.send(owner, conv.id);
  await owner.api('PATCH', `/v1/messages/${message.id}`, {
    text: 'edited',
    expectedVersion: message.version,
  });
  await owner.api('PUT', `/v1/messages/${message.id}/reactions/:ok:`, {});
  await watcher.event('message.reactions', conv.id);
  await owner.api('PUT', `/v1/messages/${message.id}/pin`);
  await owner.api('DELETE', `/v1/messages/${message.id}`);
  const poll = { question: 'Which?', options: [{ text: 'a' }, { text: 'b' }] };
  const asked = await scene.send(owner, conv.id, { poll });
  await owner.api('POST', `/v1/messages/${asked.id}/poll/close`);
  const second = await scene.send(owner, conv.id);
  assert.equal((await scene.server('DELETE', `/v1/messages/${second.id}?hard=true`)).status, 204);
  await owner.api('POST', `/v1/conversations/${conv.id}/members`, { userIds: [guest.id] });
  await scene.server('PATCH', `/v1/conversations/${conv.id}/members/${guest.id}`, { role: 'owner' });
  await owner.api('DELETE', `/v1/conversations/${conv.id}/members/${guest.id}`);
  await owner.api('PATCH', `/v1/conversations/${conv.id}`, { name: 'renamed' });
  assert.equal((await scene.server('DELETE', `/v1/conversations/${conv.id}`)).status, 204);
  await watcher.event('conversation.deleted', conv.id);
  assertContiguous(watcher, conv.id);
  const types = watcher.events(conv.id).map((f) => f.e as string);
  assert.equal(types[0], 'conversation.created');
  assert.deepEqual(new Set(types), new Set(Object.keys(socketEvents)));
});

test('events#membership-bounds: a user added while its node had no route gets member.added and everything after it, in a race with sends', async () => {
  for (const round of range(12)) {
    const [owner, added] = await Promise.all([scene.actor(), scene.actor()]);
    const conv = await scene.group(owner, []);
    const socket = await cluster.online(b, added);
    const other = createScene(b.url);
    const add = owner.api('POST', `/v1/conversations/${conv.id}/members`, { userIds: [added.id] });
    const sends = range(20).map((i) =>
      (i % 2 ? other : scene).send(null, conv.id, { text: `${round} ${i}` }),
    );
    assert.equal((await add).status, 200);
    await Promise.all(sends);
    const marker = await scene.send(owner, conv.id, { text: 'last' });
    await socket.next((f) => f.t === 'event' && f.cid === conv.id && f.seq === marker.seq, 'the last event');
    const [first] = socket.events(conv.id);
    assert.equal(first.e, 'member.added', `round ${round}: the first event is its own addition`);
    assert.ok(first.d.userIds.includes(added.id));
    assertContiguous(socket, conv.id);
  }
});

test('events#membership-bounds: a member removed by another node gets its own member.removed and nothing after it, in a race with sends', async () => {
  for (const round of range(8)) {
    const [owner, leaver, stays] = await Promise.all([scene.actor(), scene.actor(), scene.actor()]);
    const conv = await scene.group(owner, [leaver, stays]);
    const [gone, still] = await Promise.all([cluster.online(b, leaver), cluster.online(b, stays)]);
    const other = createScene(b.url);
    const sends = range(10).map((i) => (i % 2 ? other : scene).send(null, conv.id, { text: `${i}` }));
    const removed = owner.api('DELETE', `/v1/conversations/${conv.id}/members/${leaver.id}`);
    const more = range(10).map((i) => (i % 2 ? other : scene).send(null, conv.id, { text: `${i}` }));
    assert.equal((await removed).status, 204);
    await Promise.all([...sends, ...more]);
    const marker = await scene.send(owner, conv.id);
    await still.next((f) => f.t === 'event' && f.cid === conv.id && f.seq === marker.seq, 'the last event');
    await gone.barrier();
    assertContiguous(still, conv.id);
    assertContiguous(gone, conv.id);
    const own = gone.events(conv.id).at(-1);
    assert.equal(own.e, 'member.removed', `round ${round}`);
    assert.equal(own.d.userId, leaver.id);
  }
});

test('events#membership-bounds: added, removed and added again over both nodes while messages flow: exactly the times of membership', async () => {
  const [owner, guest] = await Promise.all([scene.actor(), scene.actor()]);
  const conv = await scene.group(owner, []);
  const socket = await cluster.online(b, guest);
  const apis = [owner, cluster.at(b, owner)];
  const other = createScene(b.url);
  let talking = true;
  const talk = (async () => {
    for (let i = 0; talking && i < 500; i++)
      await (i % 2 ? other : scene).send(null, conv.id, { text: `${i}` });
  })();
  for (const i of range(6)) {
    const added = await apis[i % 2]!.api('POST', `/v1/conversations/${conv.id}/members`, {
      userIds: [guest.id],
    });
    assert.equal(added.status, 200);
    const removed = await apis[(i + 1) % 2]!.api(
      'DELETE',
      `/v1/conversations/${conv.id}/members/${guest.id}`,
    );
    assert.equal(removed.status, 204);
  }
  await owner.api('POST', `/v1/conversations/${conv.id}/members`, { userIds: [guest.id] });
  talking = false;
  await talk;
  const marker = await scene.send(owner, conv.id, { text: randomUUID() });
  await socket.next((f) => f.t === 'event' && f.cid === conv.id && f.seq === marker.seq, 'the last event');
  // The truth from the store: the events from each member.added to the next member.removed.
  const memberships: number[][] = [];
  let inside = false;
  for (let at = 0, more = true; more;) {
    const page = await scene.events(conv.id, at);
    more = page.length === 200;
    for (const event of page) {
      at = event.seq;
      if (event.type === 'member.added') {
        inside = true;
        memberships.push([]);
      }
      if (inside) memberships.at(-1)!.push(event.seq);
      if (event.type === 'member.removed') inside = false;
    }
  }
  assert.equal(memberships.length, 7);
  const got = socket.events(conv.id).map((f) => f.seq as number);
  // A membership that had ended before the node heard of it is only in the history. Of all others, every event comes.
  const heard = memberships.filter((seqs, i) => i === 6 || seqs.some((seq) => got.includes(seq)));
  assert.deepEqual(got, heard.flat());
});
