import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { systemClock } from '../../src/platform/clock.ts';
import { createLogger } from '../../src/platform/logging.ts';
import type { ClosedSession } from '../../src/features/context.ts';
import { redisPresence } from '../../src/platform/presence/redis.ts';
import { connectRedis } from '../../src/platform/redis.ts';
import { endLease } from '../redis/tools.ts';
import { createScene } from '../support/scene.ts';
import type { Actor, Scene } from '../support/scene.ts';
import { connect, open } from '../support/socket.ts';
import { environments } from '../support/service.ts';
import { signToken } from '../support/tokens.ts';
import { startInProcess } from './in-process.ts';
import type { InProcess } from './in-process.ts';
import { startParts, until } from './nodes.ts';

/** `services.sockets`: how a feature reaches users' sockets and hears that one is gone, on one node and on two. */

let parts: Awaited<ReturnType<typeof startParts>>;
let a: InProcess;
let b: InProcess;
let scene: Scene;
let pool: pg.Pool;
before(async () => {
  parts = await startParts();
  [a, b] = (await startInProcess(parts.env, 2)) as [InProcess, InProcess];
  scene = createScene(a.url);
  pool = new pg.Pool({ connectionString: parts.env['DATABASE_URL'], max: 1 });
});
after(async () => {
  await pool?.end();
  await Promise.all([a?.stop(), b?.stop()]);
  await parts?.stop();
});

async function numbers(actor: Actor): Promise<{ env: number; user: number }> {
  const { rows } = await pool.query<{ env: number; no: string }>(
    'SELECT u.env, u.no FROM users u JOIN environments e ON e.no = u.env WHERE u.id = $1 AND e.id = $2',
    [actor.id, environments.dev.id],
  );
  return { env: rows[0]!.env, user: Number(rows[0]!.no) };
}
const at = (node: InProcess, actor: Actor) => connect(node, signToken({ sub: actor.id }));

/** Every session that a node is told of. */
function told(node: InProcess): { heard: ClosedSession[]; stop: () => void } {
  const heard: ClosedSession[] = [];
  return { heard, stop: node.services.sockets.onSessionClosed((closed) => void heard.push(closed)) };
}

test('a frame reaches every live socket of the users named, on both nodes, in order, and nobody else', async () => {
  const [one, two, other] = [await scene.actor(), await scene.actor(), await scene.actor()];
  const sockets = await Promise.all([at(a, one), at(b, one), at(b, two)]);
  const bystander = await at(b, other);
  const [first, second] = [await numbers(one), await numbers(two)];
  const frame = (i: number) => ({
    t: 'receipt' as const,
    d: { cid: 'conv_x', userId: one.id, lastReadSeq: i },
  });
  for (const [i, node] of [a, a, a, b, b].entries())
    node.services.sockets.toUsers(first.env, [first.user, second.user, first.user], frame(i));
  for (const socket of sockets)
    for (let i = 0; i < 5; i++) await socket.ephemeral('receipt', (d) => d.lastReadSeq === i);
  for (const socket of sockets) {
    await socket.barrier();
    const got = socket.frames.filter((f) => f.t === 'receipt').map((f) => f.d.lastReadSeq);
    assert.equal(got.length, 5, 'once each');
    const of = (values: number[]) => got.filter((i) => values.includes(i));
    assert.deepEqual(
      [of([0, 1, 2]), of([3, 4])],
      [
        [0, 1, 2],
        [3, 4],
      ],
      'those of one node in their order',
    );
  }
  a.services.sockets.toUsers(first.env + 1, [first.user], frame(9));
  await sockets[0]!.barrier();
  assert.ok(!sockets[0]!.frames.some((f) => f.d?.lastReadSeq === 9), 'the environment must be the user’s');
  await bystander.barrier();
  assert.ok(!bystander.frames.some((f) => f.t === 'receipt'));
});

test('the end of a session is told once, on the node where it was, whoever ended it', async () => {
  const actor = await scene.actor();
  const { env, user } = await numbers(actor);
  const [here, there] = [told(a), told(b)];
  const failing = b.services.sockets.onSessionClosed(() => {
    throw new Error('a listener that fails keeps nobody from hearing it');
  });
  const [left, putOut] = [await at(a, actor), await at(b, actor)];
  const stranger = open(a);
  await stranger.opened;
  stranger.ws.terminate();
  await left.close();
  await until(() => here.heard.length > 0);
  assert.deepEqual(here.heard, [{ env, user, session: left.hello.sessionId }]);
  await scene.server('POST', `/v1/users/${actor.id}/revoke-tokens`);
  await putOut.closed;
  await until(() => there.heard.length > 0);
  assert.deepEqual(there.heard, [{ env, user, session: putOut.hello.sessionId }]);
  here.stop();
  there.stop();
  failing();
  const again = await at(a, await scene.actor());
  await again.close();
  await (await at(a, await scene.actor())).barrier();
  assert.equal(here.heard.length, 1, 'nothing more after the end');
});

test('socket#dead-node: the sessions of a node that died are told once its lease has ended, on one of the others', async () => {
  const listeners = [told(a), told(b)];
  const logger = createLogger('silent');
  const connection = connectRedis(parts.redis.url, logger);
  assert.ok(await connection.ready(10_000));
  const options = { connection, clock: systemClock, node: 'dying', graceMs: 60_000, logger };
  const registry = redisPresence(options);
  const { env, user } = await numbers(await scene.actor());
  for (const session of ['ses_1', 'ses_2']) await registry.add({ env, user }, session, 10);
  await registry.add({ env, user: user + 1_000_000 }, 'ses_3', 10);
  await connection.close();
  const others = connectRedis(parts.redis.url, logger);
  assert.ok(await others.ready(10_000));
  await endLease(others, 'dying');
  await others.close();
  const heard = () => listeners.flatMap((l) => l.heard);
  await until(() => heard().length >= 3);
  assert.deepEqual(
    heard().sort((x, y) => x.session.localeCompare(y.session)),
    [
      { env, user, session: 'ses_1' },
      { env, user, session: 'ses_2' },
      { env, user: user + 1_000_000, session: 'ses_3' },
    ],
  );
  await registry.close();
  for (const { stop } of listeners) stop();
});
