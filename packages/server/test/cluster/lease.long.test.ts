import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { realtime } from '@parley/protocol';
import { text } from '../gateway/live-scene.ts';
import type { Actor } from '../support/scene.ts';
import type { Service } from '../support/service.ts';
import type { TestSocket } from '../support/socket.ts';
import { useNodes, until } from './nodes.ts';

/** Grace periods, which take 30 s, and leases that end. All at once, each with a node of its own. */

const { cluster, scene, nodes } = useNodes([{}, {}, {}, {}]);
const [a, b, killed, frozen] = nodes as [Service, Service, Service, Service];

async function watched(users: Actor[]): Promise<{ watching: TestSocket; cid: string }> {
  const watcher = await scene.actor();
  const { id: cid } = await scene.group(watcher, users);
  const watching = await cluster.online(a, watcher);
  await watching.request('presence.watch', { userIds: users.map((u) => u.id) });
  return { watching, cid };
}
const told = (socket: TestSocket, user: Actor): boolean[] =>
  socket.frames.filter((f) => f.t === 'presence' && f.d.userId === user.id).map((f) => f.d.online);

describe('presence across nodes', { concurrency: true }, () => {
  it('presence#grace: offline for the watcher on the other node 30 s after the last socket closed, with last seen, once', async () => {
    const [user, moving] = await Promise.all([scene.actor(), scene.actor()]);
    const { watching } = await watched([user, moving]);
    const [first, second] = [await cluster.online(b, user), await cluster.online(a, user)];
    await watching.ephemeral('presence', (d) => d.userId === user.id && d.online);
    await first.close();
    const closing = Date.now();
    await second.close();
    // Meanwhile somebody else closes on one node and comes back on the other.
    await (await cluster.online(b, moving)).close();
    await cluster.online(a, moving);
    const { d } = await watching.ephemeral('presence', (p) => p.userId === user.id && !p.online);
    const lastSeen = Date.parse(d.lastSeenAt);
    assert.ok(lastSeen >= closing, 'last seen is when the last socket closed');
    assert.ok(Date.now() - lastSeen >= realtime.presenceGraceMs, 'not before the grace period ends');
    await watching.barrier();
    assert.deepEqual(told(watching, user), [true, false]);
    assert.deepEqual(told(watching, moving), [true]);
    const { presence } = await watching.request('presence.watch', { userIds: [user.id] });
    assert.deepEqual(presence, [d]);
  });

  it('socket#dead-node: the users of a node killed with -9 are offline when its lease ends, once; others stay; its sockets no longer count', async () => {
    const [lost, also] = await Promise.all([scene.actor(), scene.actor()]);
    const { watching, cid } = await watched([lost, also]);
    const second = await (async () => {
      const watcher = await scene.actor();
      await scene.group(watcher, [lost]);
      const socket = await cluster.online(b, watcher);
      await socket.request('presence.watch', { userIds: [lost.id] });
      return socket;
    })();
    await Promise.all(Array.from({ length: 10 }, () => cluster.online(killed, lost)));
    await cluster.online(killed, also);
    const stays = await cluster.online(b, also);
    await watching.ephemeral('presence', (d) => d.userId === also.id && d.online);
    await killed.kill();
    await cluster.endLeaseOf(lost);
    for (const socket of [watching, second])
      await socket.ephemeral('presence', (p) => p.userId === lost.id && !p.online);
    // The ten ghosts are gone: a new socket closes nobody of those that live.
    const fresh = [];
    for (let i = 0; i < 10; i++) fresh.push(await cluster.online(i % 2 ? a : b, lost));
    for (const socket of fresh) await socket.barrier();
    const { seq } = await stays.request('message.send', text(cid));
    await watching.next((f) => f.t === 'event' && f.seq === seq, 'the message');
    // Watchers are told beside the login, not before it.
    await until(() => told(second, lost).length >= 3);
    assert.deepEqual(told(watching, lost).slice(0, 2), [true, false]);
    assert.deepEqual(told(second, lost), [true, false, true], 'exactly once each');
    assert.deepEqual(told(watching, also), [true]);
  });

  it('presence#grace: a node that stood still for longer than its lease: offline for watchers, and online again when it goes on', async () => {
    const user = await scene.actor();
    const { watching, cid } = await watched([user]);
    const socket = await cluster.online(frozen, user);
    await watching.ephemeral('presence', (d) => d.online);
    frozen.process.kill('SIGSTOP');
    await cluster.endLeaseOf(user);
    await watching.ephemeral('presence', (d) => !d.online);
    frozen.process.kill('SIGCONT');
    await watching.ephemeral('presence', (d) => d.online);
    assert.deepEqual(told(watching, user), [true, false, true]);
    await socket.barrier();
    const { seq } = await scene.send(null, cid);
    await socket.next((f) => f.t === 'event' && f.seq === seq, 'the message');
    const online = async (): Promise<boolean> =>
      (await watching.request('presence.watch', { userIds: [user.id] })).presence[0].online;
    await until(online);
  });
});
