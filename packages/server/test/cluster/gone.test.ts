import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { MemoryBroker } from '../gateway/memory-broker.ts';
import { createPeers } from '../../src/platform/peers.ts';
import { PgDb } from '../../src/platform/postgres/db.ts';
import { messageTo } from '../core/log-tools.ts';
import { outsidePostgres } from '../core/tools.ts';
import { createScene } from '../support/scene.ts';
import { lazy, use } from '../support/use.ts';
import { startInProcess } from './in-process.ts';

/** A node that dies between a commit and telling of it. */

const broker = new MemoryBroker();
const world = use(
  async () => {
    const postgres = await outsidePostgres();
    const env = { DATABASE_URL: postgres.url, CHAT_MASTER_KEY: randomBytes(32).toString('base64') };
    const peers: typeof createPeers = (...given) => ({ ...createPeers(...given), bus: broker.bus() });
    const [dying, living] = await startInProcess(env, 2, { peers });
    const db = new PgDb(postgres.connection, { max: 2, onError: () => undefined });
    return { postgres, db, dying: dying!, living: living! };
  },
  async ({ postgres, db, living }) => {
    await living.stop();
    await db.close();
    await postgres.dispose();
  },
);
const scene = lazy(() => createScene(world.living.url));

test('the sockets of the others learn within seconds what a dead node committed', async () => {
  const [ann, bob, guest] = await Promise.all([scene.person(), scene.person(), scene.person()]);
  const conv = await scene.group(ann.actor, [bob.actor]);
  await bob.socket.event('conversation.created', conv.id);
  const { dying, db } = world;
  // What its operations would have told, had it lived.
  dying.services.log.publish = () => undefined;
  await dying.services.log.append(await messageTo(db, conv.id, ann.actor.id));
  const there = createScene(dying.url);
  await there.server('POST', `/v1/conversations/${conv.id}/members`, { userIds: [guest.actor.id] });
  const secret = await there.group(ann.actor, [bob.actor]);
  await there.server('DELETE', `/v1/conversations/${conv.id}/members/${bob.actor.id}`);
  await dying.stop();

  assert.equal((await ann.socket.event('message.new', conv.id)).seq, 2);
  await ann.socket.event('member.removed', conv.id);
  await bob.socket.event('member.removed', conv.id);
  for (const { socket } of [bob, guest]) await socket.ephemeral('resync_hint');
  await scene.send(ann.actor, conv.id, { text: 'who is here' });
  await scene.send(ann.actor, secret.id, { text: 'and here' });
  await guest.socket.event('message.new', conv.id);
  await bob.socket.event('message.new', secret.id);
  await bob.socket.barrier();
  assert.ok(!bob.socket.events(conv.id).some((f) => f.d.message?.text === 'who is here'));
});
