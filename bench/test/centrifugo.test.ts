import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { WebSocketServer } from 'ws';
import { Crowd } from '../src/load/crowd.ts';

test('Centrifugo: confirmations and deliveries are counted though they share a frame, refusals are told', async () => {
  let answered = 0;
  let pongs = 0;
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  server.on('connection', (socket) =>
    socket.on('message', (bytes) => {
      if (String(bytes) === '{}') return void (pongs += 1);
      const asked = JSON.parse(String(bytes)) as { id: number; publish?: { channel: string; data: object } };
      if (!asked.publish) return socket.send(`{"id":${asked.id},"connect":{"client":"c"}}\n{}`);
      const push = JSON.stringify({
        push: { channel: asked.publish.channel, pub: { data: asked.publish.data } },
      });
      socket.send(
        ++answered === 3
          ? `{"id":${asked.id},"error":{"code":103,"message":"permission denied"}}`
          : `{"id":${asked.id},"publish":{}}\n${push}\n${push}`,
      );
    }),
  );
  const crowd = new Crowd(
    () => 0.5,
    () => undefined,
  );
  try {
    const { port } = server.address() as AddressInfo;
    const account = { name: 'a', secret: 'token', rooms: ['r'], speaks: 'r' };
    const opened = await crowd.open({ do: 'open', wire: 'centrifugo', port, accounts: [account], atOnce: 1 });
    assert.deepEqual([opened.opened, opened.failed], [1, 0], opened.firstFailure);
    const run = await crowd.run({ do: 'run', paceMs: 1, burst: 1, warmMs: 0, windowMs: 200 });
    assert.equal(run.total.delivered, 2 * run.total.acked);
    assert.equal(run.total.acked, answered - 1);
    assert.match(run.firstError, /permission denied/);
    assert.equal(run.errors, 1);
    assert.equal(pongs, 1);
  } finally {
    crowd.close();
    for (const socket of server.clients) socket.terminate();
    server.close();
  }
});
