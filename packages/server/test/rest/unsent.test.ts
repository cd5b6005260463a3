import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { ApiError } from '@parley/protocol';
import { Pieces } from '../../src/transport/rest/pieces.ts';
import { Unsent } from '../../src/transport/rest/unsent.ts';
import type { UnsentBounds } from '../../src/transport/rest/unsent.ts';

const megabyte = 1024 * 1024;
/** More than the kernel's buffers of a connection take. */
const large = Buffer.alloc(30 * megabyte, 'x');

/** A server whose answers are watched; the path names the caller. The clock moves when the test says so. */
async function start(
  t: TestContext,
  bounds: Partial<UnsentBounds> = {},
  payload: () => Buffer | Readable = () => large,
) {
  const time = { at: 1_000_000, now: () => time.at };
  const unsent = new Unsent({ server: 1e9, other: 1e9, all: 1e9, stallMs: 20_000, ...bounds }, time.now);
  const sockets: Socket[] = [];
  const server = createServer((req, res) => {
    const body = unsent.watch(req.url!.slice(1), payload(), res);
    assert.ok(body instanceof Readable, 'handed over piece by piece');
    if (body instanceof Pieces) res.setHeader('content-length', large.length);
    res.on('close', () => body.destroy());
    body.on('error', () => undefined).pipe(res);
  });
  server.on('connection', (socket: Socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const port = (server.address() as AddressInfo).port;
  return {
    time,
    unsent,
    /** Asks and reads nothing; resolves with the server's side of the connection, once the answer is under way. */
    ask: async (who: string): Promise<{ mine: Socket; theirs: Socket }> => {
      const mine = connect(port, '127.0.0.1').on('error', () => undefined);
      t.after(() => mine.destroy());
      const asked = once(server, 'request');
      mine.write(`GET /${who} HTTP/1.1\r\nhost: x\r\n\r\n`);
      await asked;
      return { mine, theirs: sockets.at(-1)! };
    },
  };
}
const closed = (socket: Socket) => new Promise((resolve) => socket.once('close', resolve));

test('an answer that nobody reads is given up with its connection', async (t) => {
  const { time, unsent, ask } = await start(t);
  const { theirs } = await ask('u1');
  assert.equal(unsent.bytes, large.length);
  const gone = closed(theirs);
  // The kernel takes the first pieces; then nothing moves.
  const timer = setInterval(() => {
    time.at += 10_000;
    unsent.tick();
  }, 50);
  await gone;
  clearInterval(timer);
  assert.equal(unsent.bytes, 0);
});

test('an answer that is read slowly arrives whole', async (t) => {
  const { time, unsent, ask } = await start(t);
  const { mine, theirs } = await ask('u1');
  let read = 0;
  mine.on('data', (chunk) => {
    read += chunk.length;
    // All of it takes many times as long as nothing may move.
    time.at += Math.ceil((chunk.length / megabyte) * 2_000);
    unsent.tick();
    if (read > large.length) mine.end();
  });
  await closed(theirs);
  assert.ok(read > large.length);
  assert.ok(time.at > 1_000_000 + 2 * 20_000);
  assert.equal(unsent.bytes, 0);
});

test('a stream without an end that nobody reads is given up, and ends', async (t) => {
  let ended = false;
  function* endless() {
    try {
      for (;;) yield large.subarray(0, 10_000);
    } finally {
      ended = true;
    }
  }
  const { time, unsent, ask } = await start(t, {}, () => Readable.from(endless()));
  const { theirs } = await ask('u1');
  assert.ok(unsent.bytes > 0);
  const gone = closed(theirs);
  const timer = setInterval(() => {
    time.at += 10_000;
    unsent.tick();
  }, 50);
  await gone;
  clearInterval(timer);
  assert.equal(unsent.bytes, 0);
  while (!ended) await new Promise((resolve) => setImmediate(resolve));
});

test('what waits for one caller is bounded, whatever others read', async (t) => {
  const { unsent, ask } = await start(t, { other: 50 * megabyte, server: 80 * megabyte });
  const full = (who: string) => {
    try {
      unsent.refuseFull(who, who.startsWith('k'));
      return false;
    } catch (error) {
      assert.ok(error instanceof ApiError && error.row.http === 429 && error.retryAfterMs! > 0);
      return true;
    }
  };
  const first = await ask('u1');
  assert.equal(full('u1'), false);
  await ask('u1');
  assert.deepEqual([full('u1'), full('u2'), full('k1')], [true, false, false]);
  await ask('k1');
  await ask('k1');
  assert.equal(full('k1'), false, 'a server may have more');
  await ask('k1');
  assert.equal(full('k1'), true);
  const gone = closed(first.theirs);
  first.mine.destroy();
  await gone;
  assert.equal(full('u1'), false, 'who goes away frees what waited');
});

test('what waits in all is bounded: what has not moved for the longest goes', async (t) => {
  const { time, unsent, ask } = await start(t, { all: 70 * megabyte });
  const first = await ask('u1');
  time.at += 1_000;
  const second = await ask('u2');
  time.at += 1_000;
  const gone = closed(first.theirs);
  const third = await ask('u3');
  await gone;
  assert.deepEqual([second.theirs.destroyed, third.theirs.destroyed], [false, false]);
  assert.equal(unsent.bytes, 2 * large.length);
});

test('small answers are sent as they are', () => {
  const unsent = new Unsent({ server: 1, other: 1, all: 1, stallMs: 1 }, () => 0);
  assert.equal(unsent.watch('u1', 'x'.repeat(8_000), {} as never), 'x'.repeat(8_000));
  assert.equal(unsent.bytes, 0);
});
