import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { test } from 'node:test';
import { WebSocket } from 'ws';
import { ApiError, plans, rateLimits, realtime } from '@parley/protocol';
import { createIds, pooledRandom, systemTimers } from '../../src/platform/clock.ts';
import { connectionsFor, descriptorLimit } from '../../src/platform/descriptors.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { memoryRateLimiter } from '../../src/platform/rate-limit/memory.ts';
import { createKeepAlive } from '../../src/transport/gateway/keep-alive.ts';
import { createLogin } from '../../src/transport/gateway/login.ts';
import type { LoginOptions } from '../../src/transport/gateway/login.ts';
import { Opening } from '../../src/transport/gateway/opening.ts';
import type { Session } from '../../src/transport/gateway/session.ts';
import { Sessions } from '../../src/transport/gateway/sessions.ts';
import { clientAddress } from '../../src/transport/gateway/upgrade.ts';
import { Writer } from '../../src/transport/gateway/writer.ts';

/** Sockets that never log in, and how many there may be; with the clock in the test's hand and no store behind it. */

const clock = { at: 1_000_000, now: () => clock.at, monotonic: () => clock.at };
const logger = createLogger('silent');

async function door(t: TestContext, bounds = { perAddress: 3, inAll: 5 }, maxConnections = Infinity) {
  const sessions = new Sessions(systemTimers);
  const turnedAway: string[] = [];
  const opening = new Opening({
    sessions,
    clock,
    timers: systemTimers,
    ids: createIds(clock, pooledRandom()),
    limiter: memoryRateLimiter(clock),
    writer: new Writer<Session>(systemTimers, () => assert.fail('overflow')),
    trustProxy: true,
    isLocal: () => false,
    silentBounds: bounds,
    onRefused: (address) => void turnedAway.push(address),
    maxConnections,
    events: {
      message: (session) => sessions.heard(session),
      ping: () => undefined,
      pong: () => undefined,
      closed: (session) => sessions.remove(session),
    },
  });
  const server = createServer();
  opening.listen(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(async () => {
    for (const session of sessions.all) session.ws.terminate();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  const dial = (address: string) =>
    new WebSocket(`ws://127.0.0.1:${port}/v1`, realtime.subprotocol, {
      headers: { 'x-forwarded-for': `made up, ${address}` },
    });
  return {
    sessions,
    turnedAway,
    keepAlive: createKeepAlive(sessions, clock),
    async open(address: string): Promise<WebSocket> {
      const ws = dial(address);
      await once(ws, 'open');
      return ws;
    },
    async refused(address: string) {
      const ws = dial(address);
      ws.on('error', () => undefined);
      const [, response] = await once(ws, 'unexpected-response');
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk as Buffer);
      const { error } = JSON.parse(Buffer.concat(chunks).toString());
      return { status: response.statusCode as number, headers: response.headers, error };
    },
  };
}

/** Resolves when the condition holds; what it waits for is another turn of the loop. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

test('a bound for sockets of one address that have not sent their auth; one that sends it, or goes, makes room', async (t) => {
  const { open, refused, sessions, turnedAway } = await door(t);
  const [first, second] = [await open('10.0.0.1'), await open('10.0.0.1'), await open('10.0.0.1')];
  const { status, headers, error } = await refused('10.0.0.1');
  assert.deepEqual([status, error.type, error.code], [429, 'rate_limited', 'rate_limited']);
  assert.ok(error.retryAfterMs > 0);
  assert.equal(headers['retry-after'], String(error.retryAfterMs / 1000));
  assert.equal(headers['request-id'], error.requestId);
  assert.match(headers['ratelimit-remaining'], /^\d+$/);
  await open('10.0.0.2');
  second.send('auth');
  await until(() => sessions.room({ perAddress: 3, inAll: 9 }, '10.0.0.1') === 'free');
  await open('10.0.0.1');
  assert.equal((await refused('10.0.0.1')).status, 429);
  assert.deepEqual(turnedAway, ['10.0.0.1', '10.0.0.1'], 'the door hears of it');
  first.terminate();
  await until(() => sessions.room({ perAddress: 3, inAll: 9 }, '10.0.0.1') === 'free');
  await open('10.0.0.1');
});

test('a bound for all of them together', async (t) => {
  const { open, refused, sessions, turnedAway } = await door(t);
  const sockets = await Promise.all(['1', '2', '3', '4', '5'].map((i) => open(`10.0.0.${i}`)));
  const { status, error } = await refused('10.0.0.6');
  assert.deepEqual([status, error.code], [503, 'service_unavailable']);
  assert.deepEqual(turnedAway, [], 'which is not the fault of this address');
  sockets[0]!.send('auth');
  await until(() => sessions.room({ perAddress: 3, inAll: 5 }, '10.0.0.6') === 'free');
  await open('10.0.0.6');
});

test('socket#auth: a socket without its auth is cut off at 5 s, whether its client answers the close or not', async (t) => {
  const { open, sessions, keepAlive } = await door(t);
  const deaf = await open('10.0.0.1');
  const polite = await open('10.0.0.2');
  deaf.pause();
  const closed = once(polite, 'close');
  clock.at += realtime.authTimeoutMs - 1;
  keepAlive.tick();
  assert.equal(sessions.size, 2);
  clock.at += 1;
  keepAlive.tick();
  await until(() => sessions.size === 0);
  assert.equal((await closed)[0], 4001);
});

test('sockets that are due together end a few in each turn of the event loop, and all of them', async (t) => {
  const { open, sessions, keepAlive } = await door(t, { perAddress: 50, inAll: 50 });
  await Promise.all(Array.from({ length: 50 }, () => open('10.0.0.1')));
  clock.at += realtime.authTimeoutMs;
  keepAlive.tick();
  assert.equal(sessions.all.filter((session) => session.isOpen).length, 30);
  await until(() => sessions.size === 0);
});

test('sockets leave a tenth of the connections to requests', async (t) => {
  const { open, refused } = await door(t, { perAddress: 99, inAll: 99 }, 10);
  for (let i = 0; i < 9; i++) await open('10.0.0.1');
  const { status, error } = await refused('10.0.0.1');
  assert.deepEqual([status, error.code], [503, 'service_unavailable']);
});

test('the descriptor limit is read, and connections stay clear of it', () => {
  const limits = `Limit                     Soft Limit           Hard Limit           Units
Max processes             63704                63704                processes
Max open files            1024                 4096                 files
`;
  assert.equal(descriptorLimit(limits), 1_024);
  assert.equal(descriptorLimit('nothing of the kind'), undefined);
  assert.ok(descriptorLimit()! > 0, 'of this process');
  assert.equal(connectionsFor(40), 8, 'a reserve of 32');
});

test('socket#login: wrong tokens count by address, and beyond the limit the close is 4008 with a pause', async () => {
  const closes: [number, string][] = [];
  const session = (address: string) =>
    ({
      address,
      heard: true,
      close: (code: number, reason: string) => void closes.push([code, reason]),
    }) as unknown as Session;
  const login = createLogin({
    services: { plans },
    authenticator: { authenticate: () => Promise.reject(new ApiError('token_invalid')) },
    limiter: memoryRateLimiter(clock),
    sessions: new Sessions(systemTimers),
    log: { refused: () => undefined },
    logger,
  } as unknown as LoginOptions);
  for (let i = 0; i < rateLimits.anonymous.burst; i++) await login(session('10.0.0.1'), 'guess');
  assert.deepEqual(new Set(closes.map(([code]) => code)), new Set([4001]));
  await login(session('10.0.0.1'), 'guess');
  const [code, reason] = closes.at(-1)!;
  assert.equal(code, 4008);
  assert.ok(JSON.parse(reason).retryAfterMs >= 1_000, reason);
  await login(session('10.0.0.2'), 'guess');
  assert.equal(closes.at(-1)![0], 4001, 'another address');
});

test('plans#addresses: the address is the peer’s, or what a trusted proxy added last', () => {
  const request = (forwarded?: string) =>
    ({
      headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
      socket: { remoteAddress: '10.9.9.9' },
    }) as unknown as Parameters<typeof clientAddress>[0];
  assert.equal(clientAddress(request('1.1.1.1, 2.2.2.2'), true), '2.2.2.2');
  assert.equal(clientAddress(request('1.1.1.1, 2.2.2.2'), false), '10.9.9.9');
  assert.equal(clientAddress(request(), true), '10.9.9.9');
});
