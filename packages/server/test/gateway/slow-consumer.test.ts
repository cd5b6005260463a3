import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { assertContiguous } from './live-scene.ts';
import { useService } from '../support/use.ts';

/** socket#slow: sockets that do not read are cut off; the others do not notice. */

const { scene } = useService();

/** Larger than what the kernel keeps for a connection (some megabytes) and the gateway's 1 MB together. */
const flood = 400;

test('a socket that stops reading is cut off, and syncs when it is back; the others get everything in order', async () => {
  const reader = await scene.person();
  const sleeper = await scene.person();
  const conv = await scene.group(null, [reader.actor, sleeper.actor]);
  await sleeper.socket.event('conversation.created', conv.id);
  sleeper.socket.ws.pause();
  const body = { text: '🎉'.repeat(5_000) };
  for (let sent = 0; sent < flood; sent += 20)
    await Promise.all(Array.from({ length: 20 }, () => scene.send(null, conv.id, body)));
  const last = flood + 1;
  await reader.socket.next((f) => f.seq === last, `seq ${last}`);
  assertContiguous(reader.socket, conv.id);
  assert.equal(reader.socket.events(conv.id).length, last);
  sleeper.socket.ws.resume();
  assert.equal((await sleeper.socket.closed).code, 1006);
  assert.ok(sleeper.socket.events(conv.id).length < last, 'it was not kept waiting for it all');
  const back = await scene.online(sleeper.actor);
  const { conversations } = await back.request('sync', { cursor: null });
  assert.deepEqual(conversations, [{ id: conv.id, lastSeq: last, unreadCount: flood }]);
});

test('a socket that asks and pings without reading the answers is cut off too', async () => {
  const { actor, socket } = await scene.person();
  const { _socket: wire } = socket.ws as unknown as { _socket: Socket };
  socket.ws.pause();
  const payload = 'p'.repeat(125);
  // Each is answered by a pong or an error frame, a few megabytes of which the kernel takes.
  const frame = JSON.stringify({ t: 'x'.repeat(40), id: 'y'.repeat(64) });
  for (let round = 0; round < 400 && !wire.destroyed; round++) {
    for (let i = 0; i < 250; i++) {
      socket.ws.ping(payload);
      socket.raw(frame);
    }
    await new Promise<void>((resolve) => socket.ws.ping(payload, true, () => resolve()));
  }
  socket.ws.resume();
  assert.ok([1006, 4008].includes((await socket.closed).code), 'the server ended the connection');
  await (await scene.online(actor)).barrier();
});
