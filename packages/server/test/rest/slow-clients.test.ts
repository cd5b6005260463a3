import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { ApiError } from '@parley/protocol';
import { pieceBytes, slowClientLimits, SlowClients } from '../../src/transport/rest/slow-clients.ts';

const megabyte = 1024 * 1024;
/** More than the kernel's buffers of a connection take. */
const large = Buffer.alloc(30 * megabyte, 'x');

/** A server whose answers are watched; the path names the caller. The clock moves when the test says so. */
async function start(
  t: TestContext,
  changes: Partial<typeof slowClientLimits> = {},
  payload: () => Buffer | Readable = () => large,
) {
  const time = { at: 1_000_000, now: () => time.at };
  const sockets: Socket[] = [];
  const server = createServer((req, res) => {
    const body = slow.watch(req.url!.slice(1), payload(), res);
    assert.ok(body instanceof Readable, 'handed over piece by piece');
    res.on('close', () => body.destroy());
    body.on('error', () => undefined).pipe(res);
  });
  const limits = {
    ...slowClientLimits,
    unreadOfServer: 1e9,
    unreadOfOther: 1e9,
    unreadInAll: 1e9,
    ...changes,
  };
  const slow = new SlowClients(server, time.now, limits);
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
    slow,
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
  const { time, slow, ask } = await start(t);
  const { theirs } = await ask('u1');
  assert.equal(slow.unreadBytes, large.length);
  const gone = closed(theirs);
  // The kernel takes the first pieces; then nothing moves.
  const timer = setInterval(() => {
    time.at += 10_000;
    slow.look();
  }, 50);
  await gone;
  clearInterval(timer);
  assert.equal(slow.unreadBytes, 0);
});

test('an answer that is read slowly arrives whole', async (t) => {
  const { time, slow, ask } = await start(t);
  const { mine, theirs } = await ask('u1');
  let read = 0;
  mine.on('data', (chunk) => {
    read += chunk.length;
    // All of it takes many times as long as nothing may move.
    time.at += Math.ceil((chunk.length / megabyte) * 2_000);
    slow.look();
    if (read > large.length) mine.end();
  });
  await closed(theirs);
  assert.ok(read > large.length);
  assert.ok(time.at > 1_000_000 + 2 * 20_000);
  assert.equal(slow.unreadBytes, 0);
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
  const { time, slow, ask } = await start(t, {}, () => Readable.from(endless()));
  const { theirs } = await ask('u1');
  assert.ok(slow.unreadBytes > 0);
  const gone = closed(theirs);
  const timer = setInterval(() => {
    time.at += 10_000;
    slow.look();
  }, 50);
  await gone;
  clearInterval(timer);
  assert.equal(slow.unreadBytes, 0);
  while (!ended) await new Promise((resolve) => setImmediate(resolve));
});

test('what waits for one caller is bounded, whatever others read', async (t) => {
  const { slow, ask } = await start(t, { unreadOfOther: 50 * megabyte, unreadOfServer: 80 * megabyte });
  const full = (who: string) => {
    try {
      slow.refuseFull(who, who.startsWith('k'));
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
  const { time, slow, ask } = await start(t, { unreadInAll: 70 * megabyte });
  const first = await ask('u1');
  time.at += 1_000;
  const second = await ask('u2');
  time.at += 1_000;
  const gone = closed(first.theirs);
  const third = await ask('u3');
  await gone;
  assert.deepEqual([second.theirs.destroyed, third.theirs.destroyed], [false, false]);
  assert.equal(slow.unreadBytes, 2 * large.length);
});

test('small answers are sent as they are', () => {
  const slow = new SlowClients(createServer(), () => 0);
  assert.equal(slow.watch('u1', 'x'.repeat(8_000), {} as never), 'x'.repeat(8_000));
  assert.equal(slow.unreadBytes, 0);
});

test('a caller that keeps asking after refusals is answered later, and then not at all', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const time = { at: 5_000 };
  const limits = { ...slowClientLimits, refusals: 3, heldMs: 1_000, held: 2, heldInAll: 3, callers: 10 };
  const slow = new SlowClients(createServer(), () => time.at, limits);
  const told: string[] = [];
  const refuse = (who: string) => slow.hold(who).then((answer) => void told.push(`${who} ${answer}`));
  const settled = async () => {
    for (let i = 0; i < 5; i++) await Promise.resolve();
  };
  for (let i = 0; i < 6; i++) void refuse('a');
  await settled();
  assert.deepEqual(told, ['a true', 'a true', 'a true', 'a false'], 'two are held, and one is dropped');
  for (let i = 0; i < 5; i++) void refuse('b');
  await settled();
  assert.deepEqual(
    told.slice(4),
    ['b true', 'b true', 'b true', 'b false'],
    'one is held: then all places are taken',
  );
  t.mock.timers.tick(1_000);
  await settled();
  assert.deepEqual(told.slice(8).toSorted(), ['a true', 'a true', 'b true']);
  time.at += 1_000;
  void refuse('a');
  await settled();
  assert.equal(told.at(-1), 'a true');
  assert.equal(told.length, 12, 'a new second begins anew');
});

test('a large body is cut into pieces and whole again, and others run between two of them', async () => {
  const slow = new SlowClients(createServer(), () => 0);
  for (const size of [pieceBytes + 1, 3 * pieceBytes]) {
    const body = Buffer.alloc(size, 'ab');
    const pieces = slow.watch('u1', body, new EventEmitter() as ServerResponse);
    assert.ok(pieces instanceof Readable);
    const chunks: Buffer[] = [];
    let others = 0;
    for await (const chunk of pieces as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      setImmediate(() => (others += 1));
    }
    assert.equal(chunks.length, Math.ceil(size / pieceBytes));
    assert.ok(others > 0);
    assert.ok(Buffer.concat(chunks).equals(body));
  }
});
