import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BusListener } from '../../src/platform/bus/port.ts';
import { createPeers } from '../../src/platform/peers.ts';
import { startHere } from './here.ts';
import { lazy, use } from '../support/use.ts';
import { createScene } from '../support/scene.ts';

/** events#resync-hint: a node that lost its fan-out subscription tells its sockets when it is back. */

let listener: BusListener;
/** What a login waits for before its `hello`. */
let beforeHello = (): Promise<void> => Promise.resolve();
const here = use(
  () =>
    startHere({
      peers: (...given) => {
        const peers = createPeers(...given);
        const listen = peers.bus.listen.bind(peers.bus);
        peers.bus.listen = (its) => listen((listener = its));
        const add = peers.registry.add.bind(peers.registry);
        peers.registry.add = async (...session) => {
          await beforeHello();
          return add(...session);
        };
        return peers;
      },
    }),
  (h) => h.dispose(),
);
const scene = lazy(() => createScene(here.url));

test('events#resync-hint: resync_hint to every socket; who was put out on another node meanwhile is found', async () => {
  const [stays, deactivated, revoked] = await Promise.all([scene.person(), scene.person(), scene.person()]);
  await here.sql('UPDATE users SET deactivated_at = now() WHERE id = $1', [deactivated.actor.id]);
  await here.sql(`UPDATE users SET tokens_from = now() + interval '10 seconds' WHERE id = $1`, [
    revoked.actor.id,
  ]);
  listener.restored();
  for (const { socket } of [stays, deactivated, revoked]) await socket.ephemeral('resync_hint');
  assert.equal((await deactivated.socket.closed).code, 4003);
  assert.equal((await revoked.socket.closed).code, 4001);
  await stays.socket.barrier();
});

test('socket#nodes: what other nodes say reaches the sockets here: events, receipts and evictions', async () => {
  const [one, two, three] = await Promise.all([scene.person(), scene.person(), scene.person()]);
  const conv = await scene.group(one.actor, [two.actor, three.actor]);
  await one.socket.event('conversation.created', conv.id);
  const event = { env: 1, conv: 1, cid: conv.id, seq: 2, e: 'conversation.updated' };
  const frame = {
    t: 'event',
    e: 'conversation.updated',
    cid: conv.id,
    seq: 2,
    d: { changes: { name: 'x' }, actorId: null },
  };
  listener.message(`c:${conv.id}`, JSON.stringify(['event', { ...event, frame: JSON.stringify(frame) }]));
  for (const { socket } of [one, two, three])
    assert.deepEqual((await socket.event('conversation.updated', conv.id)).d.changes, { name: 'x' });
  const receipt = { cid: conv.id, userId: 'u', lastReadSeq: 1 };
  listener.message(
    `c:${conv.id}`,
    JSON.stringify(['relay', { frame: JSON.stringify({ t: 'receipt', d: receipt }), except: null }]),
  );
  await two.socket.ephemeral('receipt');
  listener.message('n:here', JSON.stringify(['evict', two.socket.hello.sessionId]));
  assert.equal((await two.socket.closed).code, 4009);
  for (const nonsense of ['', '{}', '[]', '["none"]', '["evict","nobody"]'])
    listener.message('c:none', nonsense);
  await one.socket.barrier();
});

test('events#resync-hint: who was added on another node meanwhile gets what is said from then on', async () => {
  const [owner, added] = await Promise.all([scene.person(), scene.person()]);
  const conv = await scene.group(owner.actor, [await scene.actor()]);
  await here.sql(
    `UPDATE members SET usr = (SELECT no FROM users WHERE id = $1)
     WHERE role = 'member' AND conv = (SELECT no FROM conversations WHERE id = $2)`,
    [added.actor.id, conv.id],
  );
  listener.restored();
  // One says that something may have been missed, the other that a conversation was.
  for (const _ of [1, 2]) await added.socket.ephemeral('resync_hint');
  const { seq } = await scene.send(owner.actor, conv.id, { text: 'after' });
  await added.socket.next((f) => f.t === 'event' && f.cid === conv.id && f.seq === seq, 'the message');
});

test('events#personal: what changes while a socket logs in is told after its hello', async () => {
  const [ann, ben] = await Promise.all([scene.actor(), scene.person()]);
  const [reached, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  beforeHello = () => {
    reached.resolve();
    return goOn.promise;
  };
  const connecting = scene.online(ann);
  await reached.promise;
  assert.equal((await ann.api('PUT', `/v1/blocks/${ben.actor.id}`, {})).status, 200);
  goOn.resolve();
  const socket = await connecting;
  const { d } = await socket.ephemeral('personal');
  assert.deepEqual([socket.hello.personalRev, d.rev, d.kind], [0, 1, 'block']);
});
