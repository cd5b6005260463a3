import assert from 'node:assert/strict';
import { Duplex } from 'node:stream';
import { test } from 'node:test';
import type { WebSocket } from 'ws';
import { realtime } from '@parley/protocol';
import { systemTimers } from '../../src/platform/clock.ts';
import { createLogger } from '../../src/platform/logging.ts';
import type { Queryable } from '../../src/platform/postgres/db.ts';
import { Delivery } from '../../src/realtime/delivery.ts';
import { parseFrame, requestIdOf } from '../../src/transport/gateway/frames.ts';
import { ReceiptRelay } from '../../src/realtime/receipts.ts';
import type { ReceiptRelayOptions } from '../../src/realtime/receipts.ts';
import { Session } from '../../src/transport/gateway/session.ts';
import { Writer } from '../../src/transport/gateway/writer.ts';
import { Typing } from '../../src/realtime/typing.ts';
import { StandingTime } from '../support/time.ts';
import { ackFrame, errorFrame, textFrame } from '../../src/realtime/wire.ts';
import { localUser } from './local-user.ts';

/** The gateway's parts by themselves, with the clock in the test's hand. */

const logger = createLogger('silent');
const clock = (start = 1_000_000) => {
  let at = start;
  return { now: () => at, monotonic: () => at, advance: (ms: number) => void (at += ms) };
};
const ticked = () => new Promise((resolve) => setImmediate(resolve));

test('RFC 6455, 5.2: text frames of every length class', () => {
  for (const [length, head] of [
    [0, 2],
    [125, 2],
    [126, 4],
    [65_535, 4],
    [65_536, 10],
    [200_000, 10],
  ] as const) {
    const frame = textFrame('x'.repeat(length));
    assert.equal(frame.length, head + length);
    assert.equal(frame[0], 0x81);
    const told =
      head === 2 ? frame[1] : head === 4 ? frame.readUInt16BE(2) : Number(frame.readBigUInt64BE(2));
    assert.equal(told, length);
  }
  assert.equal(textFrame('🎉€').length, 2 + 7, 'bytes, not characters');
});

test('socket#envelopes: acks and errors carry re as it came; retryAfterMs only where there is one', () => {
  const body = (frame: Buffer) => JSON.parse(frame.subarray(2).toString());
  assert.deepEqual(body(ackFrame('"\\', { a: 1 })), { t: 'ack', re: '"\\', d: { a: 1 } });
  assert.deepEqual(body(errorFrame(3, { code: 'x', message: 'y', retryAfterMs: 0 })), {
    t: 'error',
    re: 3,
    code: 'x',
    message: 'y',
    retryAfterMs: 0,
  });
  assert.deepEqual(body(errorFrame(undefined, { code: 'x', message: 'y', retryAfterMs: null })), {
    t: 'error',
    code: 'x',
    message: 'y',
  });
});

test('socket#envelopes: request ids are taken from whatever came, if they are ids', () => {
  assert.equal(requestIdOf({ id: 'a' }), 'a');
  assert.equal(requestIdOf({ id: 0 }), 0);
  for (const value of [
    null,
    undefined,
    3,
    'x',
    [],
    { id: {} },
    { id: 'x'.repeat(65) },
    { id: 1.5 },
    { id: 2 ** 60 },
  ])
    assert.equal(requestIdOf(value), undefined);
  assert.throws(() => parseFrame({ t: 'constructor' }), { code: 'invalid_frame' });
});

/** A socket whose other side never reads. */
function stalled() {
  const writes: Buffer[] = [];
  const socket = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer) => void writes.push(chunk),
  });
  return { socket, writes };
}

function liveSession(socket: Duplex, writer: Writer<Session>): Session {
  const session = new Session({ readyState: 1 } as WebSocket, socket, writer, clock(0), {
    address: '',
    named: [],
    sdk: null,
  });
  session.state = 'live';
  return session;
}

test('ARCHITECTURE: the frames of one tick leave as one write', async () => {
  const { socket, writes } = stalled();
  const session = liveSession(socket, new Writer<Session>(systemTimers, () => assert.fail('overflow')));
  for (const text of ['1', '2', '3']) session.send(textFrame(text));
  assert.equal(writes.length, 0);
  await ticked();
  assert.deepEqual(writes, [Buffer.concat(['1', '2', '3'].map(textFrame))]);
});

test('the more frames there are, the longer a write waits for others, when the process is pressed: at most 45 ms', async () => {
  let pressure = 0;
  const time = new StandingTime();
  const flushes: number[] = [];
  let waits = false;
  const session = {
    flush: () => {
      waits = false;
      flushes.push(time.monotonic());
    },
  };
  const writer = new Writer<typeof session>(
    time.timers,
    () => assert.fail('overflow'),
    () => pressure,
  );
  /** For a second; the milliseconds between its last two writes. */
  const frames = async (everyMillisecond: number): Promise<number> => {
    for (let ms = 0; ms < 1_000; ms++) {
      for (let i = 0; i < everyMillisecond; i++) {
        writer.add(waits ? null : session, 10);
        waits = true;
      }
      await time.pass(1);
    }
    return Math.round(flushes.at(-1)! - flushes.at(-2)!);
  };
  assert.equal(await frames(100), 1);
  pressure = 1;
  assert.equal(await frames(1), 1);
  assert.equal(await frames(10), 10);
  assert.equal(await frames(100), 45);
});

test('socket#login: nothing is sent before hello', async () => {
  const { socket, writes } = stalled();
  const session = liveSession(socket, new Writer<Session>(systemTimers, () => assert.fail('overflow')));
  session.state = 'authenticating';
  session.send(textFrame('early'));
  session.greet(textFrame('hello'));
  await ticked();
  assert.deepEqual(writes, [textFrame('hello')]);
});

test('events#personal: what is sent while a login is checked follows its hello; who is sent too much meanwhile is cut off', async () => {
  const { socket, writes } = stalled();
  let cut = 0;
  const session = liveSession(socket, new Writer<Session>(systemTimers, () => cut++));
  session.state = 'authenticating';
  session.hold();
  for (let i = 0; i < 1_000; i++) session.send(textFrame('held'));
  session.flush();
  assert.deepEqual([writes, cut], [[], 0]);
  session.hold();
  session.send(textFrame('held'));
  session.greet(textFrame('hello'));
  await ticked();
  assert.deepEqual(writes, [Buffer.concat(['hello', 'held'].map(textFrame))]);

  session.state = 'authenticating';
  session.hold();
  for (let i = 0; i < 1_002; i++) session.send(textFrame('held'));
  assert.equal(cut, 1);
});

test('socket#slow: a socket that does not take its frames is cut off at 1 MB, and holds no more than that and one tick', async () => {
  const { socket } = stalled();
  let cut = 0;
  const session = liveSession(
    socket,
    new Writer<Session>(systemTimers, (s) => {
      cut++;
      (s.ws as { readyState: number }).readyState = 3;
    }),
  );
  const frame = textFrame('x'.repeat(10_000));
  for (let i = 0; i < 1_000; i++) {
    session.send(frame);
    await ticked();
  }
  assert.equal(cut, 1);
  assert.ok(socket.writableLength <= 1024 * 1024 + frame.length, `${socket.writableLength} bytes`);
});

const receiptRelay = (
  time: { now: () => number },
  deliver: (cid: string, d: any) => void,
  publish: ReceiptRelayOptions['publish'] = () => undefined,
) => new ReceiptRelay({ deliver: (cid, frame) => deliver(cid, JSON.parse(frame).d), publish, now: time.now });

test('receipts#receipt: marks of one user that move on two nodes are still one receipt per second for every socket', () => {
  const time = clock();
  const start = time.now();
  const got: [number, any][][] = [[], []];
  const published: number[] = [0, 0];
  const relays: ReceiptRelay[] = [0, 1].map((node) =>
    receiptRelay(
      time,
      (_cid, d) => got[node]!.push([time.now() - start, d]),
      (receipt) => {
        published[node]!++;
        relays[1 - node]!.heard(receipt);
      },
    ),
  );
  for (let i = 1; i <= 40; i++) {
    const mark = i % 4 === 3 ? { lastDeliveredSeq: i } : { lastReadSeq: i };
    relays[i % 2]!.add({ env: 1, cid: 'c', user: 1, userId: 'u', ...mark });
    time.advance(100);
    for (const relay of relays) relay.tick();
  }
  for (let i = 0; i < 30; i++) {
    time.advance(100);
    for (const relay of relays) relay.tick();
  }
  for (const node of [0, 1]) {
    const times = got[node]!.map(([at]) => at);
    for (let i = 1; i < times.length; i++) assert.ok(times[i]! - times[i - 1]! >= 1_000, `${times}`);
    const last = Object.assign({}, ...got[node]!.map(([, d]) => d));
    assert.deepEqual(
      [last.lastReadSeq, last.lastDeliveredSeq],
      [40, 39],
      'the last values arrive everywhere',
    );
    assert.ok(published[node]! <= 6, 'nodes tell each other no more often');
  }
});

test('receipts#receipt: receipts leave at once, then at most once per second, and the last value always', () => {
  const time = clock();
  const sent: any[] = [];
  const relay = receiptRelay(time, (cid, d) => sent.push([time.now(), cid, d]));
  const mark = (more: object) => relay.add({ env: 1, cid: 'c', user: 1, userId: 'u', ...more });
  const start = time.now();
  for (let seq = 1; seq <= 50; seq++) {
    mark({ lastReadSeq: seq });
    if (seq === 20) mark({ lastDeliveredSeq: 30 });
    time.advance(100);
    relay.tick();
  }
  for (let i = 0; i < 20; i++) {
    time.advance(100);
    relay.tick();
  }
  assert.deepEqual(
    sent.map(([at]) => at - start),
    [0, 1_000, 2_000, 3_000, 4_000, 5_000],
  );
  assert.deepEqual(sent[2]![2], { cid: 'c', userId: 'u', lastReadSeq: 20, lastDeliveredSeq: 30 });
  assert.equal(sent.at(-1)![2].lastReadSeq, 50);
  mark({ lastReadSeq: 51 });
  assert.equal(sent.at(-1)![2].lastReadSeq, 51, 'at once again after a quiet second');
  mark({ lastReadSeq: 52 });
  relay.flush();
  assert.equal(sent.at(-1)![2].lastReadSeq, 52, 'what waits leaves at shutdown');
});

test('receipts#receipt: the second is per conversation and user', () => {
  const time = clock();
  const sent: string[] = [];
  const relay = receiptRelay(time, (cid, d) => sent.push(`${cid} ${d.userId}`));
  for (const cid of ['c1', 'c2'])
    for (const user of [1, 2]) relay.add({ env: 1, cid, user, userId: `u${user}`, lastReadSeq: 1 });
  assert.deepEqual(sent, ['c1 u1', 'c1 u2', 'c2 u1', 'c2 u2']);
});

test('presence#typing-pace: typing starts pass once per 3 s, stops only after a start, and turns of both once per second', () => {
  const time = clock();
  const typing = new Typing(time.now, () => assert.fail('nobody asks'));
  assert.equal(typing.allows('c', 1, 'stop'), false);
  assert.equal(typing.allows('c', 1, 'start'), true);
  assert.equal(typing.allows('c', 1, 'start'), false);
  assert.equal(typing.allows('c', 2, 'start'), true);
  assert.equal(typing.allows('d', 1, 'start'), true);
  time.advance(realtime.typingThrottleMs);
  assert.equal(typing.allows('c', 1, 'start'), true);
  let relayed = 0;
  for (let i = 0; i < 100; i++) {
    time.advance(50);
    if (typing.allows('c', 1, 'stop')) relayed++;
    if (typing.allows('c', 1, 'start')) relayed++;
  }
  assert.ok(relayed <= 11, `${relayed} in 5 s`);
});

test('presence#typing-limits: a start that the store must permit is relayed after its answer, unless a stop came or it said no', async () => {
  const time = clock();
  const answers = [Promise.withResolvers<boolean[]>(), Promise.withResolvers<boolean[]>()];
  const asked: number[] = [];
  const typing = new Typing(time.now, (typists) => {
    asked.push(...typists.map((t) => t.user));
    return answers[asked.length - 1]!.promise;
  });
  const start = (no: number): Promise<boolean> => {
    assert.equal(typing.allows('c', no, 'start', true), true);
    return typing.permits({ env: 1, cid: 'c', user: no });
  };
  const permitted = start(1);
  assert.equal(typing.allows('c', 1, 'start', true), false, 'asked once in 3 s');
  answers[0]!.resolve([true]);
  assert.equal(await permitted, true);
  assert.equal(typing.allows('c', 1, 'stop'), true);
  // One that stops before the answer, and one that may not.
  const both = [start(2), start(3)];
  assert.equal(typing.allows('c', 2, 'stop'), false);
  answers[1]!.resolve([true]);
  assert.equal(await both[0], false);
  answers.push({ ...Promise.withResolvers<boolean[]>(), promise: Promise.resolve([false]) });
  assert.equal(await both[1], false);
  assert.equal(typing.allows('c', 3, 'stop'), false);
  assert.deepEqual(asked, [1, 2, 3]);
});

test('receipts#delivered: delivered marks are written once per second, the greatest of each, for all sessions together', async () => {
  const time = clock();
  const written: unknown[][] = [];
  const receipts: object[] = [];
  const db = {
    query: (_text: string, values: unknown[]) => {
      written.push(values);
      return Promise.resolve([{ ord: 1, seq: 9 }]);
    },
  } as unknown as Queryable;
  const delivery = new Delivery({ db, receipt: (mark) => receipts.push(mark), now: time.now, logger });
  const [one, two] = [{ user: localUser(1) } as Session, { user: localUser(2) } as Session];
  delivery.tick();
  for (const seq of [3, 9, 5]) delivery.add(one!, [{ cid: 'c', seq }]);
  delivery.add(two!, [
    { cid: 'c', seq: 1 },
    { cid: 'd', seq: 2 },
  ]);
  delivery.tick();
  await ticked();
  assert.deepEqual(written, [
    [
      [1, 1, 1],
      ['c', 'c', 'd'],
      [1, 2, 2],
      [9, 1, 2],
    ],
  ]);
  assert.deepEqual(receipts, [{ env: 1, cid: 'c', user: 1, userId: 'u1', lastDeliveredSeq: 9 }]);
  delivery.add(one!, [{ cid: 'c', seq: 10 }]);
  time.advance(999);
  delivery.tick();
  assert.equal(written.length, 1);
  time.advance(1);
  delivery.tick();
  assert.equal(written.length, 2);
  await ticked();
  for (let i = 0; i < 5_000; i++) delivery.add(one!, [{ cid: `c${i}`, seq: 1 }]);
  await delivery.flush();
  const waited = written.slice(2).flatMap(([envs]) => envs as number[]);
  assert.equal(waited.length, 1_000, 'what waits for one session is bounded');
});

test('receipts#delivered: delivery marks go on after the store was away', async () => {
  const time = clock();
  let away = true;
  let written = 0;
  const db = {
    query: () =>
      away ? Promise.reject(new Error('store away')) : Promise.resolve([]).finally(() => written++),
  } as unknown as Queryable;
  const delivery = new Delivery({ db, receipt: () => undefined, now: time.now, logger });
  const session = { user: localUser(1) } as Session;
  delivery.add(session, [{ cid: 'c', seq: 1 }]);
  delivery.tick();
  await ticked();
  away = false;
  time.advance(1_000);
  delivery.add(session, [{ cid: 'c', seq: 2 }]);
  delivery.tick();
  await ticked();
  assert.equal(written, 1);
});
