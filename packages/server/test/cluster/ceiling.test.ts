import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plans } from '@parley/protocol';
import { createScene } from '../support/scene.ts';
import { connect, open } from '../support/socket.ts';
import { startInProcess } from './in-process.ts';
import type { InProcess } from './in-process.ts';
import { startParts, until } from './nodes.ts';

/** Two nodes in this process, so that the plan's ceiling can be low. */
test('plans#connections: the plan’s connection ceiling counts the sockets of all nodes; 4008 with retryAfterMs, and room again when one closes', async () => {
  const parts = await startParts();
  const [a, b] = (await startInProcess(parts.env, 2, {
    plans: { ...plans, free: { ...plans.free, connectionLimit: 4 } },
  })) as [InProcess, InProcess];
  try {
    const scene = createScene(a.url, 'prod');
    const people = await Promise.all(Array.from({ length: 5 }, () => scene.actor()));
    const tokens = people.map((person) => scene.token(person));
    const sockets = [];
    for (const [i, token] of tokens.slice(0, 4).entries()) sockets.push(await connect(i % 2 ? b : a, token));
    for (const node of [a, b]) {
      const refused = open(node);
      await refused.opened;
      refused.send('auth', { token: tokens[4] });
      const { code, reason } = await refused.closed;
      assert.equal(code, 4008);
      assert.ok(JSON.parse(reason).retryAfterMs > 0, reason);
    }
    // Another environment has its own count.
    const elsewhere = createScene(b.url);
    await (await elsewhere.online(await elsewhere.actor())).close();
    const there = async () => (await elsewhere.server('GET', '/v1/analytics')).body;
    await until(async () => (await there()).live.connections === 0);
    await connect(a, elsewhere.token(await elsewhere.actor()));
    assert.equal(
      (await there()).totals.peakConnections,
      1,
      'one at a time, not the sum of what each node had',
    );
    await sockets[1]!.close();
    const again = async (): Promise<boolean> =>
      connect(a, tokens[4]!).then(
        () => true,
        () => false,
      );
    await until(again);
    // Twenty at once, on both nodes: never more than the plan allows.
    const crowd = await Promise.all(Array.from({ length: 20 }, () => scene.actor()));
    const report = async () => (await scene.server('GET', '/v1/analytics')).body;
    await Promise.all(sockets.map((socket) => socket.close()));
    await until(async () => (await report()).live.connections === 1);
    const tries = await Promise.allSettled(
      crowd.map((person, i) => connect(i % 2 ? b : a, scene.token(person))),
    );
    assert.equal(tries.filter(({ status }) => status === 'fulfilled').length, 3);
    const { live, totals } = await report();
    assert.equal(live.connections, 4);
    assert.equal(totals.peakConnections, 4);
  } finally {
    await Promise.all([a.stop(), b.stop()]);
    await parts.stop();
  }
});
