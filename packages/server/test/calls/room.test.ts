import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import type { Socket } from 'node:net';
import { it } from 'node:test';
import { limits } from '@parley/protocol';
import type { ApiError, RtpParameters } from '@parley/protocol';
import type { types } from 'mediasoup';
import { createLogger } from '../../src/platform/logging.ts';
import { Engine } from '../../src/platform/media/engine.ts';
import type { ExtraCodec } from '../../src/platform/media/engine.ts';
import { Room } from '../../src/platform/media/room.ts';
import { findWorkerBinary } from '../../src/platform/media/worker-binary.ts';
import { use } from '../support/use.ts';
import { mediaPort } from './media-service.ts';
import { audio, receiving, video } from './rtp.ts';
import { bindingRequest } from './stun.ts';

/** Media of one call on a real worker, without a service around it. */

const startEngine = async (codecs: readonly ExtraCodec[], workers = 1, port?: number): Promise<Engine> =>
  Engine.start({
    binary: await findWorkerBinary(),
    workers,
    listenIp: '127.0.0.1',
    port: port ?? (await mediaPort(workers)),
    announcedAddress: undefined,
    codecs,
    logger: createLogger('silent'),
  });
const plain = use(
  () => startEngine([]),
  (engine) => engine.close(),
);
const pair = use(
  () => startEngine([], 2),
  (engine) => engine.close(),
);
const rich = use(
  () => startEngine(['h264', 'vp9', 'av1']),
  (engine) => engine.close(),
);

const quiet = { connected() {}, producer() {}, speakers() {}, flooded() {} };
const seat = (user: number) => ({ user, userId: `u${user}`, session: `s${user}`, device: `d${user}` });
const anybody = () => Promise.resolve(true);
const anew = { resume: false, tcp: false };
const open = (room: Room, user: number) => room.open(seat(user), receiving, anew, anybody);
const produceMic = (room: Room, user: number) =>
  room.answer('call.produce', user, `s${user}`, {
    source: 'mic',
    kind: 'audio',
    paused: false,
    rtpParameters: audio(),
  });
/** Counts what was accepted and what was refused, by the code of the error. */
async function outcomes(all: Promise<unknown>[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const one of await Promise.allSettled(all)) {
    const key = one.status === 'fulfilled' ? 'accepted' : (one.reason as ApiError).code;
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}
const names = async (engine: Engine) =>
  (await engine.rtpCapabilities()).codecs!.map((c) => c.mimeType).filter((name) => !name.endsWith('/rtx'));

it('offers Opus with FEC and DTX and VP8 always, and H264, VP9 and AV1 where they are asked for', async () => {
  assert.deepEqual(await names(plain), ['audio/opus', 'video/VP8']);
  assert.deepEqual(await names(rich), ['audio/opus', 'video/VP8', 'video/H264', 'video/VP9', 'video/AV1']);
  const [opus] = (await plain.rtpCapabilities()).codecs!;
  assert.deepEqual(opus!.parameters, { useinbandfec: 1, usedtx: 1 });
});

for (const [protocol, taken] of [
  ['UDP', takeUdp],
  ['TCP', takeTcp],
] as const)
  it(`a media port that is taken for ${protocol} is reported with the setting that chooses it`, async () => {
    const port = await mediaPort(1);
    await using _other = await taken(port);
    await assert.rejects(startEngine([], 1, port), (error: Error) => {
      assert.match(error.message, new RegExp(`cannot listen at 127\\.0\\.0\\.1:${port}: `));
      assert.match(error.message, /Set CHAT_MEDIA_PORT to a port that is free/);
      assert.doesNotMatch(error.message, /uv_/);
      return true;
    });
  });

async function takeUdp(port: number): Promise<AsyncDisposable> {
  const socket = createSocket('udp4').bind(port, '127.0.0.1');
  await once(socket, 'listening');
  return { [Symbol.asyncDispose]: () => new Promise((resolve) => socket.close(() => resolve())) };
}

async function takeTcp(port: number): Promise<AsyncDisposable> {
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  return { [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())) };
}

it('a device that does not know a codec receives all the rest of the call', async () => {
  const room = new Room(rich, quiet, () => 0);
  const all = { resume: false, tcp: false };
  await room.open(seat(1), receiving, all, anybody);
  await room.open(seat(2), receiving, all, anybody);
  const h264 = {
    ...video(),
    codecs: [
      {
        mimeType: 'video/H264',
        payloadType: 97,
        clockRate: 90_000,
        parameters: { 'packetization-mode': 1, 'profile-level-id': '42e01f', 'level-asymmetry-allowed': 1 },
      },
    ],
  };
  const produce = async (source: 'camera' | 'mic', kind: types.MediaKind, rtpParameters: RtpParameters) =>
    (
      await room.answer('call.produce', 1, 's1', {
        source,
        kind,
        paused: false,
        rtpParameters,
      })
    ).producerId;
  const ids = [await produce('camera', 'video', h264), await produce('mic', 'audio', audio())];
  const { consumers } = await room.answer('call.consume', 2, 's2', { producerIds: ids });
  assert.deepEqual(
    consumers.map((c) => c.producerId),
    ids.slice(1),
  );
  room.close();
});

it('bounds a participant: two transports, what each may carry, and how many sources it receives', async () => {
  const made: types.Transport[] = [];
  plain.alive[0]!.worker.observer.on('newrouter', (router) =>
    router.observer.on('newtransport', (transport) => made.push(transport)),
  );
  const room = new Room(plain, quiet, () => performance.now() * 1e3);
  const all = { resume: false, tcp: false };
  for (const user of [1, 2, 2]) await room.open(seat(user), receiving, all, anybody);
  assert.deepEqual(
    made.map((transport) => transport.closed),
    [false, false, true, true, false, false],
    'who opens again has two and no more',
  );
  const [send, recv] = await Promise.all(
    made.slice(4).map(async (t) => (await t.getStats())[0] as types.WebRtcTransportStat),
  );
  assert.equal(send!.maxIncomingBitrate, limits.callIncomingBitrate);
  assert.equal(recv!.maxOutgoingBitrate, limits.callOutgoingBitrate);
  const { producerId } = await room.answer('call.produce', 1, 's1', {
    source: 'mic',
    kind: 'audio',
    paused: false,
    rtpParameters: audio(),
  });
  for (let i = 0; i < 200; i++)
    assert.equal(
      (await room.answer('call.consume', 2, 's2', { producerIds: [producerId] })).consumers.length,
      1,
    );
  await assert.rejects(
    room.answer('call.consume', 2, 's2', { producerIds: [producerId] }),
    /At most 200 sources/,
  );
  room.close();
});

it('docs/calls.md, bounds: of what is asked for at once no more is accepted than one after the other', async () => {
  const room = new Room(plain, quiet, () => performance.now() * 1e3);
  const others = new Room(pair, quiet, () => 0);
  for (const user of [1, 2]) await open(room, user);
  const microphones = Array.from({ length: 40 }, () => produceMic(room, 1));
  assert.deepEqual(await outcomes(microphones), { accepted: 1, invalid_request: 39 });
  const { producers } = await open(room, 3);
  assert.equal(producers.length, 1, 'one microphone');
  const received = Array.from({ length: 220 }, () =>
    room.answer('call.consume', 2, 's2', { producerIds: [producers[0]!.id] }),
  );
  assert.deepEqual(await outcomes(received), { accepted: 200, invalid_request: 20 });

  const crowd = await Promise.all(Array.from({ length: 24 }, (_, i) => open(others, i + 1)));
  const ports = crowd.map(({ send }) => (send!.iceCandidates[0] as { port: number }).port);
  const sizes = [...Map.groupBy(ports, (port) => port).values()].map((seats) => seats.length);
  assert.deepEqual(sizes, [12, 12], 'twelve seats on each worker');
  for (const one of [room, others]) one.close();
});

it('docs/calls.md, bounds: a user who opens media many times at once has two transports, and none once put out', async () => {
  const made: types.Transport[] = [];
  const room = new Room(plain, quiet, () => 0);
  plain.alive[0]!.worker.observer.on('newrouter', (router) =>
    router.observer.on('newtransport', (transport) => made.push(transport)),
  );
  const there = () => made.filter((transport) => !transport.closed).length;
  const many = Array.from({ length: 10 }, () => open(room, 1));
  assert.deepEqual(await outcomes(many), { accepted: 4, rate_limited: 6 });
  assert.equal(there(), 2);
  const opening = [open(room, 1), open(room, 1)];
  room.leave(1);
  assert.deepEqual(await outcomes(opening), { not_found: 2 });
  assert.deepEqual([there(), room.seats.length], [0, 0]);
  await open(room, 1);
  assert.equal(there(), 2, 'and may come back');
  room.close();
});

it('docs/calls.md, Media nodes: a worker gets nothing of the environment, where secrets are', async () => {
  const { pid } = plain.alive[0]!.worker;
  const names = (await readFile(`/proc/${pid}/environ`, 'utf8'))
    .split('\0')
    .filter(Boolean)
    .map((line) => line.slice(0, line.indexOf('=')));
  const needed = process.env['LD_LIBRARY_PATH'] === undefined ? [] : ['LD_LIBRARY_PATH'];
  assert.deepEqual(names.toSorted(), [...needed, 'MEDIASOUP_VERSION']);
  assert.ok(process.env['PATH'], 'ours is as it was');
});

it(
  'docs/calls.md, bounds: of TCP connections that no transport accepted a worker keeps 1,024, and none for long',
  { timeout: 120_000 },
  async () => {
    const room = new Room(plain, quiet, () => 0);
    const { recv } = await room.open(seat(1), receiving, { resume: false, tcp: true }, anybody);
    const { port } = recv!.iceCandidates[0] as { port: number };
    const dial = async (): Promise<{ socket: Socket; closed: Promise<unknown> }> => {
      const socket = connect(port, '127.0.0.1');
      await once(socket, 'connect');
      socket.resume();
      return { socket, closed: once(socket, 'close') };
    };
    const ask = async (socket: Socket): Promise<void> => {
      const answer = once(socket, 'data');
      socket.write(bindingRequest(recv!.iceParameters as { usernameFragment: string; password: string }));
      assert.equal(((await answer)[0] as Buffer).readUInt16BE(2), 0x0101, 'a success response');
    };
    const member = await dial();
    await ask(member.socket);
    const idle = [];
    for (let i = 0; i < 1_024; i++) idle.push(await dial());
    const chatty = idle[3]!.socket;
    chatty.write(bindingRequest({ usernameFragment: 'nobody', password: 'x' }));
    idle.push(await dial(), await dial());
    await Promise.all(idle.slice(0, 2).map(({ closed }) => closed));
    assert.equal(idle.filter(({ socket }) => !socket.closed).length, 1_024, 'the oldest make room');
    await Promise.all(idle.map(({ closed }) => closed));
    await ask(member.socket);
    member.socket.destroy();
    room.close();
  },
);
