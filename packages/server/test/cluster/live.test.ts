import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { LiveNode, SocketSession } from '@parley/protocol';
import { signedInOwner } from '../accounts/dashboard.ts';
import { follow } from '../logs/tools.ts';
import { useNodes } from './nodes.ts';

/** What is live, seen and ended from another node than the one that has the socket. */

const { cluster, scene, nodes } = useNodes([{}, {}]);

test('nodes and sockets of all nodes are listed, sessions are ended and traced from any of them', async () => {
  const [a, b] = nodes as [(typeof nodes)[0], (typeof nodes)[0]];
  const owner = await signedInOwner(a.url);
  const dashboard = owner.in('env_dev');
  const listed = async (): Promise<LiveNode[]> => (await dashboard('GET', '/v1/live/nodes')).body.data;
  while ((await listed()).length < 2) await delay(50);
  const ann = await scene.actor('ann');
  const here = await cluster.online(a, ann);
  const there = await cluster.online(b, ann);
  let rows: SocketSession[] = [];
  while (rows.length < 2) {
    await delay(50);
    rows = (await dashboard('GET', `/v1/live/sockets?userId=${ann.id}`)).body.data;
  }
  assert.equal(new Set(rows.map((r) => r.node)).size, 2);
  assert.deepEqual(
    (await listed()).map((n) => n.sockets),
    [1, 1],
  );
  assert.equal((await dashboard('GET', '/v1/overview')).body.connections, 2);

  const followed = await follow(owner, a.url, 'env_dev', `userId=${ann.id}`);
  // The other node hears of it over the bus, a moment later.
  while (!followed.lines.some((l) => l.t === 'sync' && l.sessionId === there.hello.sessionId)) {
    await there.request('sync', { cursor: null });
    await delay(50);
  }
  await here.request('sync', { cursor: null });
  await followed.next((l) => l.t === 'sync' && l.sessionId === here.hello.sessionId);
  assert.deepEqual(new Set(followed.lines.flatMap((l) => l.node ?? [])), new Set(rows.map((r) => r.node)));

  const path = `/v1/users/${ann.id}/sessions/${there.hello.sessionId}`;
  assert.equal((await dashboard('DELETE', path)).status, 204);
  assert.equal((await there.closed).code, 4001);
  await followed.next((l) => l.t === 'close' && l.sessionId === there.hello.sessionId);
  followed.stop();
  await here.close();
});
