import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { slowClientLimits } from '../../src/transport/rest/slow-clients.ts';
import { useStandingHere } from '../gateway/here.ts';

/** Connections on which nothing is asked, or not all of it, in a time that stands still. */

const { here, time } = useStandingHere();

const { idleMs, requestMs } = slowClientLimits;
const ask = 'GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n';

async function open() {
  const socket = connect(Number(new URL(here.url).port), '127.0.0.1');
  let answers = 0;
  socket.on('data', (chunk: Buffer) => (answers += chunk.toString().split('HTTP/1.1 200').length - 1));
  const ended = new Promise<string | undefined>((resolve) =>
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code)),
  );
  return {
    socket,
    ended,
    answered: async (count: number) => {
      while (answers < count) await once(socket, 'data');
    },
  };
}

test('a connection without a request is reset after 70 s, though empty lines keep coming', async (t) => {
  const one = await open();
  one.socket.write(ask.repeat(2));
  await one.answered(2);
  const lines = setInterval(() => one.socket.write('\r\n'), 50);
  t.after(() => clearInterval(lines));
  time.advance(idleMs);
  assert.equal(await one.ended, 'ECONNRESET');
});

test('a connection on which something is asked now and then stays', async () => {
  const [busy, idle] = [await open(), await open()];
  for (const { socket } of [busy, idle]) socket.write(ask);
  await Promise.all([busy.answered(1), idle.answered(1)]);
  for (let asked = 2; asked < 5; asked++) {
    time.advance(idleMs - 1);
    busy.socket.write(ask);
    await busy.answered(asked);
  }
  assert.equal(await idle.ended, 'ECONNRESET', 'so the look at idle connections has come by');
  busy.socket.write(ask);
  await busy.answered(5);
  busy.socket.destroy();
});

test('a request whose body does not arrive within 30 s ends with its connection, though bytes keep coming', async (t) => {
  const { socket } = await open();
  socket.write(
    'POST /v1/conversations HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n{',
  );
  // The kernel resets a connection that ends while bytes of it are not read: either way it is closed.
  const closed = new Promise((resolve) => socket.once('close', resolve));
  const bytes = setInterval(() => {
    socket.write(' ');
    time.advance(requestMs / 10);
  }, 50);
  t.after(() => clearInterval(bytes));
  await closed;
});
