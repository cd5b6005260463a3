import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as tcp } from 'node:net';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { open } from '../support/socket.ts';
import type { TestSocket } from '../support/socket.ts';
import { brokenWire, fuzzFrame, seeded } from './fuzz-frames.ts';
import type { Random } from './fuzz-frames.ts';
import { startHere } from './here.ts';
import { assertContiguous, text } from './live-scene.ts';
import { lazy, setUp, use } from '../support/use.ts';
import { createScene } from '../support/scene.ts';
import { seed } from '../../../../scripts/seed.ts';

/** Whatever comes in, the node stays up, serves the others and keeps nothing of it. */

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;

const here = use(startHere, (h) => h.dispose());
const scene = lazy(() => createScene(here.url));
let witnesses: { send: TestSocket; hear: TestSocket; cid: string };
setUp(async () => {
  const [a, b] = [await scene.person(), await scene.person()];
  const conv = await scene.group(a.actor, [b.actor]);
  witnesses = { send: a.socket, hear: b.socket, cid: conv.id };
});

/** The others are served, in order, all the while. Asked for often, it looks a few times a second: sends are limited. */
let looking: Promise<void> | undefined;
let lookedAt = 0;
async function witness(): Promise<void> {
  if (!looking && Date.now() - lookedAt < 200) return;
  looking ??= look().finally(() => {
    looking = undefined;
    lookedAt = Date.now();
  });
  await looking;
}

async function look(): Promise<void> {
  const { seq } = await witnesses.send.request('message.send', text(witnesses.cid));
  await witnesses.hear.next((f) => f.t === 'event' && f.seq === seq);
  for (const socket of [witnesses.send, witnesses.hear]) socket.send('hb');
}

interface Resources {
  sockets: number;
  heapMb: number;
}
function resources(): Resources {
  gc();
  const sockets = process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
  return { sockets, heapMb: process.memoryUsage().heapUsed / 2 ** 20 };
}

/** What is used goes back to what was used before, but for a little: what ends takes its time, and is waited for. */
async function backTo(before: Resources): Promise<void> {
  for (const end = Date.now() + 120_000; ;) {
    const now = resources();
    if (now.sockets <= before.sockets + 10 && now.heapMb < before.heapMb + 30) return;
    assert.ok(Date.now() < end, `before: ${JSON.stringify(before)}, now: ${JSON.stringify(now)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function throwFrames(random: Random, count: number): Promise<void> {
  const people = await Promise.all(Array.from({ length: 12 }, () => scene.actor('fuzz')));
  const conv = await scene.group(null, people);
  const message = await scene.send(people[0]!, conv.id);
  const ids = { cid: conv.id, message: message.id as string, user: people[1]!.id };
  const token = new Map(people.map((p) => [p, scene.token(p)]));
  await Promise.all(
    people.map(async (person) => {
      let socket: TestSocket | undefined;
      for (let i = 0; i < count / people.length; i++) {
        if (socket?.ws.readyState !== 1) {
          const before = socket;
          socket = await open(here).auth(token.get(person)!);
          if (before) check(before);
        }
        const frame = fuzzFrame(random, ids);
        const bytes = Buffer.from(frame);
        if (random.below(4) === 0 && bytes.length > 3) {
          const cut = 1 + random.below(bytes.length - 1);
          const binary = Buffer.isBuffer(frame) && random.below(2) === 0;
          socket.ws.send(bytes.subarray(0, cut), { binary, fin: false });
          if (random.below(3) === 0) socket.ws.ping(random.bytes(random.below(126)));
          socket.ws.send(bytes.subarray(cut), { fin: random.below(20) !== 0 });
        } else if (random.below(30) === 0) {
          (socket.ws as unknown as { _socket: Socket })._socket.write(brokenWire(random));
        } else socket.raw(frame);
        if (i % 5 === 0) await new Promise((resolve) => setImmediate(resolve));
        if (i % 100 === 0) await witness();
      }
      socket?.ws.terminate();
      if (socket) {
        await socket.closed;
        check(socket);
      }
    }),
  );
}

const refusals = new Map<string, number>();
const codes = new Map<number, number>();

/** Whatever was wrong is the client's: no frame may end in `internal`. */
function check(socket: TestSocket): void {
  for (const frame of socket.frames)
    if (frame.t === 'error') {
      assert.notEqual(frame.code, 'internal', JSON.stringify(frame));
      refusals.set(frame.code, (refusals.get(frame.code) ?? 0) + 1);
    }
  void socket.closed.then(({ code }) => codes.set(code, (codes.get(code) ?? 0) + 1));
}

test('socket#nonsense: thousands of frames of nonsense neither crash the node, nor disturb others, nor leave anything behind', async () => {
  const random = seeded(seed('frames'));
  await throwFrames(random, 600);
  const before = resources();
  await throwFrames(random, 6_000);
  await witness();
  await backTo(before);
  console.log(refusals, codes);
  assert.ok((refusals.get('invalid_frame') ?? 0) > 100, 'the frames were looked at');
  assertContiguous(witnesses.hear, witnesses.cid);
});

test('socket#nonsense: half-open, broken and abandoned handshakes are put away', async () => {
  const random = seeded(seed('handshakes'));
  const { port } = new URL(here.url);
  const head = 'GET /v1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n';
  const rest =
    'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: chat.v1\r\n\r\n';
  const before = resources();
  const attempts = [
    () => head,
    () => head + rest,
    () => head + rest.slice(0, -2),
    () => `${head}${rest}${brokenWire(random).toString('latin1')}`,
    () => head + rest.replace('13', '99'),
    () => head + rest.replace('chat.v1', ',,,'),
    () => head + rest.replace('dGhl', '\u0001'),
    () => head.replace('/v1', `/${'a'.repeat(5_000)}`) + rest,
    () => head.replace('/v1', 'http://[') + rest,
    () => random.bytes(200).toString('latin1'),
  ];
  const sockets: Socket[] = [];
  for (let i = 0; i < 300; i++) {
    const socket = tcp(Number(port), '127.0.0.1');
    socket.on('error', () => undefined);
    socket.on('data', () => undefined);
    sockets.push(socket);
    await once(socket, 'connect');
    socket.write(random.pick(attempts)(), 'latin1');
    if (random.below(3) === 0) socket.end();
    if (random.below(3) === 0) socket.destroy();
    if (i % 50 === 0) await witness();
  }
  await witness();
  for (const socket of sockets) socket.destroy();
  await backTo(before);
});
