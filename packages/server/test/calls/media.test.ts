import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { limits } from '@parley/protocol';
import type { ApiError } from '@parley/protocol';
import { readConfig } from '../../src/config.ts';
import { createMediaNode } from '../../src/features/calls/media-node.ts';
import type { MediaRequest, MediaValue } from '../../src/features/media-request.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { createMetrics } from '../../src/platform/metrics.ts';
import { until } from '../push-feature/tools.ts';
import type { Actor } from '../support/scene.ts';
import type { TestSocket } from '../support/socket.ts';
import { useService } from '../support/use.ts';
import { mediaPort, startMediaService } from './media-service.ts';
import { audio, dtls, receiving, video } from './rtp.ts';
import { done, hasten, start, stateOf } from './tools.ts';

/** calls#frames: media frames against a real media server; what only a browser can show is in packages/client. */

const { scene, server, db } = useService({ start: (env) => startMediaService(env) });

/** When the socket of a participant is gone. */
const goneJobs = `SELECT 1 FROM jobs WHERE queue = 'calls' AND data->>'kind' = 'gone' AND ref = (SELECT no FROM calls WHERE id = $1)`;

interface Seat {
  actor: Actor;
  socket: TestSocket;
  device: string;
  opened: any;
}

async function seat(actor: Actor, callId: string, socket?: TestSocket): Promise<Seat> {
  const here = socket ?? (await scene.online(actor));
  const { media } = await done(
    actor.api('POST', `/v1/calls/${callId}/join?sessionId=${here.hello.sessionId}`),
  );
  const opened = await here.request('call.open', {
    callId,
    device: media.device,
    rtpCapabilities: receiving,
  });
  return { actor, socket: here, device: media.device, opened };
}

async function call(n: number): Promise<[string, Seat[], Actor[]]> {
  const actors = await Promise.all(Array.from({ length: n }, () => scene.actor()));
  const { id: cid } = await scene.group(actors[0]!, actors.slice(1));
  const { id } = await start(actors[0]!, cid, { kind: 'video' });
  const seats: Seat[] = [];
  for (const actor of actors) seats.push(await seat(actor, id));
  return [id, seats, actors];
}

const produce = (of: Seat, callId: string, source: string, kind = source === 'mic' ? 'audio' : 'video') =>
  of.socket.request('call.produce', {
    callId,
    source,
    kind,
    rtpParameters: kind === 'audio' ? audio() : video(),
  });

describe('calls#frames: media over the socket', () => {
  it('opens transports, sends and receives sources, pauses them and stops them; everybody hears of it', async () => {
    const [callId, [a, b]] = (await call(2)) as [string, [Seat, Seat], Actor[]];
    for (const { opened } of [a, b])
      for (const transport of [opened.send, opened.recv]) {
        const protocols = transport.iceCandidates.map((c: any) => [c.protocol, c.ip]);
        assert.deepEqual(protocols, [
          ['udp', '127.0.0.1'],
          ['tcp', '127.0.0.1'],
        ]);
      }
    const { producerId } = await produce(a, callId, 'mic');
    const { producer } = (await b.socket.ephemeral('call.producer')).d;
    const mic = { id: producerId, userId: a.actor.id, source: 'mic', kind: 'audio' };
    assert.deepEqual(producer, { ...mic, paused: false });
    const { consumers } = await b.socket.request('call.consume', {
      callId,
      producerIds: [producerId, 'gone'],
    });
    assert.deepEqual(
      consumers.map((c: any) => [c.producerId, c.kind]),
      [[producerId, 'audio']],
    );
    await b.socket.request('call.layers', { callId, consumerId: consumers[0].id, paused: false });
    await a.socket.request('call.pause', { callId, producerId, paused: true });
    assert.equal((await b.socket.ephemeral('call.producer')).d.producer.paused, true);
    await a.socket.request('call.close', { callId, producerId });
    assert.equal((await b.socket.ephemeral('call.producer')).d.closed, true);
    const { iceParameters } = await b.socket.request('call.restart', {
      callId,
      transportId: b.opened.recv.id,
    });
    assert.notEqual(iceParameters.password, b.opened.recv.iceParameters.password);
    const { transports } = await b.socket.request('call.stats', { callId });
    assert.deepEqual(
      transports.map((t: any) => [t.id, t.iceState]),
      [
        [b.opened.send.id, 'new'],
        [b.opened.recv.id, 'new'],
      ],
    );
  });

  it('refuses what is not one’s own: a call that one is not in, another’s transport, source and device', async () => {
    const [callId, [a, b], [, second]] = (await call(2)) as [string, [Seat, Seat], Actor[]];
    const stranger = await scene.person();
    await stranger.socket.refused('call.stats', { callId }, 'not_found');
    const wanted = { callId, device: a.device, rtpCapabilities: receiving };
    await stranger.socket.refused('call.open', wanted, 'not_found');
    await b.socket.refused('call.open', wanted, 'forbidden');
    const { producerId } = await produce(a, callId, 'camera');
    const transportId = a.opened.send.id;
    await b.socket.refused('call.connect', { callId, transportId, dtlsParameters: dtls }, 'not_found');
    await b.socket.refused('call.restart', { callId, transportId }, 'not_found');
    await b.socket.refused('call.close', { callId, producerId }, 'not_found');
    await b.socket.refused('call.pause', { callId, producerId, paused: true }, 'not_found');
    // A second socket of the same user has not opened the call.
    const other = await scene.online(second!);
    await other.refused('call.restart', { callId, transportId: b.opened.send.id }, 'not_found');
    const nonsense = { callId, source: 'mic', kind: 'audio', rtpParameters: { codecs: 1 } };
    await b.socket.refused('call.produce', nonsense, 'invalid_frame');
    const unknown = { ...audio(), codecs: [{ mimeType: 'audio/x', payloadType: 111, clockRate: 48_000 }] };
    await b.socket.refused('call.produce', { ...nonsense, rtpParameters: unknown }, 'invalid_request');
    await b.socket.refused(
      'call.connect',
      { callId, transportId: b.opened.send.id, dtlsParameters: {} },
      'invalid_frame',
    );
  });

  it('bounds what one participant sends: one of each source and kind, and no camera that sends sound', async () => {
    const [callId, [a]] = (await call(2)) as [string, Seat[], Actor[]];
    await produce(a!, callId, 'mic');
    await produce(a!, callId, 'camera');
    await produce(a!, callId, 'screen');
    await produce(a!, callId, 'screen', 'audio');
    for (const [source, kind, rtpParameters] of [
      ['mic', 'audio', audio()],
      ['camera', 'video', video()],
      ['camera', 'audio', audio()],
      ['mic', 'video', video()],
    ])
      await a!.socket.refused('call.produce', { callId, source, kind, rtpParameters }, 'invalid_request');
  });

  it('a second device takes the place of the first, which hears that it moved and can do no more', async () => {
    const [callId, [a, b], [first]] = (await call(2)) as [string, [Seat, Seat], Actor[]];
    await produce(a, callId, 'mic');
    await b.socket.ephemeral('call.producer');
    const moved = await seat(first!, callId, await scene.online(first!));
    assert.equal((await a.socket.ephemeral('call.ended')).d.endedHere, 'moved');
    await a.socket.refused('call.restart', { callId, transportId: a.opened.send.id }, 'not_found');
    await a.socket.refused(
      'call.open',
      { callId, device: a.device, rtpCapabilities: receiving },
      'forbidden',
    );
    assert.equal((await b.socket.ephemeral('call.producer')).d.closed, true);
    await produce(moved, callId, 'mic');
    await b.socket.ephemeral('call.producer', (d) => !d.closed);
  });

  it('calls#put-out: who was put out while the frame was on its way gets no media, nor does a device that lost its place', async () => {
    type Handler = (request: MediaRequest) => Promise<MediaValue>;
    let serve!: Handler;
    const node = createMediaNode({
      config: {
        host: '127.0.0.1',
        mediaNode: { ...readConfig({}).config.mediaNode, workers: 1, port: await mediaPort(1) },
      },
      node: `late-${process.pid}`,
      db,
      link: { serve: (handler: Handler) => (serve = handler), ask: () => assert.fail() } as never,
      clock: { now: Date.now, monotonic: () => performance.now() },
      logger: createLogger('silent'),
      metrics: createMetrics(),
      evacuate: () => Promise.resolve(0),
    });
    const [a, b, c] = await Promise.all([scene.actor(), scene.actor(), scene.actor()]);
    const { id: callId } = await start(a, (await scene.group(a, [b, c])).id);
    const join = async (by: Actor): Promise<string> =>
      (await done(by.api('POST', `/v1/calls/${callId}/join`))).media.device;
    const devices = { first: await join(a), second: await join(a), out: await join(b), stays: await join(c) };
    await done(server('POST', `/v1/calls/${callId}/participants/${b.id}/remove`));
    const [row] = await db.query<{ env: number; no: number }>('SELECT env, no FROM calls WHERE id = $1', [
      callId,
    ]);
    node.start({ sockets: { toUsers: () => undefined } } as never);
    try {
      await until(() => node.status === 'ready', 'the media node');
      const open = async (by: Actor, device: string): Promise<string> => {
        const [user] = await db.query<{ no: number }>('SELECT no FROM users WHERE env = $1 AND id = $2', [
          row!.env,
          by.id,
        ]);
        const d = { callId, device, rtpCapabilities: receiving, userId: by.id, session: `of ${device}` };
        const request = { method: 'call.open' as const, env: row!.env, call: row!.no, user: user!.no, d };
        return serve(request).then(
          () => 'opened',
          (error: ApiError) => error.code,
        );
      };
      assert.equal(await open(b, devices.out), 'not_found');
      assert.equal(await open(a, devices.second), 'opened');
      assert.equal(await open(a, devices.first), 'not_found');
      assert.equal(await open(c, devices.stays), 'opened');
    } finally {
      await node.stop();
    }
  });

  it('calls#put-out: a media node that was not told who was put out finds out by itself', async () => {
    const [callId, [a, b]] = (await call(3)) as [string, [Seat, Seat], Actor[]];
    const { producerId } = await produce(b, callId, 'mic');
    await a.socket.ephemeral('call.producer');
    // As when the bus lost the word of it.
    await db.query(
      `UPDATE call_participants SET state = 'left', left_at = now(), device = NULL, session = NULL
       WHERE call = (SELECT no FROM calls WHERE id = $1) AND usr = (SELECT no FROM users WHERE id = $2)`,
      [callId, b.actor.id],
    );
    const gone = await a.socket.ephemeral('call.producer', (d) => d.closed);
    assert.equal(gone.d.producer.id, producerId);
    await b.socket.refused('call.stats', { callId }, 'not_found');
    await a.socket.request('call.stats', { callId });
  });

  it('a new socket resumes the media of the old one', async () => {
    const [callId, [a, b], [, second]] = (await call(2)) as [string, [Seat, Seat], Actor[]];
    const { producerId } = await produce(a, callId, 'mic');
    await b.socket.close();
    const again = await scene.online(second!);
    const opened = await again.request('call.open', {
      callId,
      device: b.device,
      rtpCapabilities: receiving,
      resume: true,
    });
    assert.deepEqual([opened.send, opened.recv, opened.producers.length], [null, null, 1]);
    await again.request('call.consume', { callId, producerIds: [producerId] });
  });

  it('a participant that floods is put out, and the others notice nothing', async () => {
    const [callId, [a, b, c]] = (await call(3)) as [string, [Seat, Seat, Seat], Actor[]];
    // More than one socket may send within its own budget: two share the flood.
    const frames = limits.callFrames.burst + 100;
    for (let i = 0; i < frames; i++) b.socket.send('call.stats', { callId }, `f${i}`);
    for (let i = 0; i < frames; i++) b.socket.asked.set(`f${i}`, 'call.stats');
    assert.equal((await b.socket.ephemeral('call.ended')).d.endedHere, 'removed');
    await c.socket.ephemeral('call.updated', (d) =>
      d.call.participants.some((p: any) => p.userId === b.actor.id && p.state === 'left'),
    );
    await produce(a, callId, 'mic');
    await c.socket.ephemeral('call.producer');
  });

  it('everything of a call goes when it ends', async () => {
    const [callId, [a, b]] = (await call(2)) as [string, [Seat, Seat], Actor[]];
    await done(server('POST', `/v1/calls/${callId}/end`));
    for (const { socket } of [a, b]) await socket.ephemeral('call.ended');
    await a.socket.refused(
      'call.open',
      { callId, device: a.device, rtpCapabilities: receiving },
      'call_ended',
    );
    const mute = await server('POST', `/v1/calls/${callId}/participants/${a.actor.id}/mute`, {
      source: 'mic',
    });
    assert.equal(mute.status, 409);
  });

  it('a call that outgrows a worker goes on over two: what is sent on one is received on the other', async () => {
    const [callId, seats] = await call(50);
    const [first, last] = [seats[0]!, seats[13]!];
    const port = (of: Seat) => of.opened.send.iceCandidates[0].port;
    assert.notEqual(port(first), port(last));
    const { producerId } = await produce(first, callId, 'mic');
    const received = await Promise.all(
      seats.slice(1).map((one) => one.socket.request('call.consume', { callId, producerIds: [producerId] })),
    );
    assert.ok(
      received.every(({ consumers }) => consumers.length === 1),
      'all 49',
    );
  });

  it('a test of the connection is a call of one’s own that receives what it sends', async () => {
    const { actor, socket } = await scene.person();
    const stranger = await scene.person();
    await stranger.socket.refused(
      'call.open',
      { callId: 'test', device: 'x', rtpCapabilities: receiving },
      'not_found',
    );
    const { callId, media } = await socket.request('call.test', {});
    assert.ok(media.rtpCapabilities.codecs.length > 0);
    const opened = await socket.request('call.open', {
      callId,
      device: media.device,
      rtpCapabilities: receiving,
      tcp: true,
    });
    assert.deepEqual(
      opened.send.iceCandidates.map((c: any) => c.protocol),
      ['tcp'],
    );
    const { producerId } = await produce({ actor, socket, device: '', opened }, callId, 'camera');
    const { consumers } = await socket.request('call.consume', { callId, producerIds: [producerId] });
    assert.equal(consumers.length, 1);
    assert.deepEqual((await actor.api('GET', '/v1/calls')).body.data, [], 'nobody sees it');
  });

  it('a caller whose socket is gone for 30 s while it rings has cancelled the call', async () => {
    const [a, b] = await Promise.all([scene.person(), scene.person()]);
    const { id: cid } = await scene.direct(a.actor, b.actor);
    const { id: callId } = await start(a.actor, cid);
    await seat(a.actor, callId, a.socket);
    await b.socket.ephemeral('call.incoming');
    // As when its process dies: nobody says goodbye.
    a.socket.ws.terminate();
    while ((await db.query(goneJobs, [callId])).length === 0) await b.socket.barrier();
    await hasten(db, callId, 'gone');
    const { d } = await b.socket.ephemeral('call.ended');
    const states = [a, b].map(({ actor }) => stateOf(d.call, actor));
    assert.deepEqual([d.call.endReason, ...states], ['cancelled', 'left', 'missed']);
  });

  it('a participant whose socket is gone for 30 s has left; one that came back has not', async () => {
    const [callId, [a, b, c]] = (await call(3)) as [string, [Seat, Seat, Seat], Actor[]];
    await Promise.all([b.socket.close(), c.socket.close()]);
    while ((await db.query(goneJobs, [callId])).length < 2) await a.socket.barrier();
    await seat(c.actor, callId);
    await hasten(db, callId, 'gone');
    const { d } = await a.socket.ephemeral('call.updated', ({ call: k }) =>
      k.participants.some((p: any) => p.userId === b.actor.id && p.state === 'left'),
    );
    assert.equal(d.call.participants.find((p: any) => p.userId === c.actor.id).state, 'joining');
  });
});
