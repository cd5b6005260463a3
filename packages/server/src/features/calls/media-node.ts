import { availableParallelism, networkInterfaces } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { ApiError } from '@parley/protocol';
import type { EphemeralFrame } from '@parley/protocol';
import type { types } from 'mediasoup';
import type { Config } from '../../config.ts';
import { Engine } from '../../platform/media/engine.ts';
import { Room } from '../../platform/media/room.ts';
import type { SeatRef } from '../../platform/media/seats.ts';
import { findWorkerBinary } from '../../platform/media/worker-binary.ts';
import { createPeriodic } from '../../platform/flow/periodic.ts';
import type { Services } from '../context.ts';
import type { Platform } from '../platform.ts';
import { withMove } from './call-state.ts';
import type { MediaLink } from './media-link.ts';
import type { MediaRequest, MediaValue } from '../media-request.ts';
import { change } from './moves.ts';
import { isIn } from './participant-state.ts';
import * as sql from './sql.ts';
import { isInWith } from './sql/participants.ts';
import { hostedCalls, removeNode, reportNode } from './sql/media-nodes.ts';

/**
 * A process that carries media (role `media`): it prepares its workers in the background, holds a lease in
 * media_nodes with its load, answers the frames of the calls that it hosts, and reports what becomes of them.
 */

const leaseSeconds = 5;
const renewMs = 1_500;
/** Milliseconds; over a shorter time the load says nothing: what a worker does to start would count as a full load. */
const leastMeasuredMs = 1_000;
/** Milliseconds before the first retry after a failure; each further one waits twice as long. */
const retryMs = 10_000;
const longestRetryMs = 600_000;
/** Milliseconds between searches for rooms of calls that ended, and seats of users who left, without this node being told. */
const reviewMs = 10_000;
/** Milliseconds that a test of a connection may take. */
const testMs = 60_000;

/** A test of a connection is a call without a row; its number is negative. */
const isTest = (call: number): boolean => call < 0;

const mediaEnded = (): ApiError =>
  new ApiError('not_found', { message: 'The media connection has ended: open it again with call.open.' });

interface Hosted {
  env: number;
  call: number;
  callId: string;
  room: Room;
  since: number;
}

export function createMediaNode(
  options: Pick<Platform, 'node' | 'db' | 'clock' | 'logger' | 'metrics'> & {
    config: Pick<Config, 'mediaNode' | 'host'>;
    link: MediaLink;
    /** Moves the calls of this node to others; returns how many stay. */
    evacuate: () => Promise<number>;
  },
) {
  const { config, node, db, link, clock, logger, metrics } = options;
  const hosted = new Map<number, Hosted>();
  const stopping = new AbortController();
  let engine: Engine | null = null;
  let services: Services;
  let state: 'preparing' | 'ready' | 'draining' | 'failed' = 'preparing';
  let status = 'preparing';
  let leftMs = 5_000;
  let capabilities: types.RtpCapabilities | null = null;
  let measured = performance.now();
  let load = 0;
  let announced = status;
  const live = () => [...hosted].filter(([no]) => !isTest(no)).map(([, { room }]) => room);
  metrics.gauge('parley_media_calls', 'Calls whose media this process carries', () => live().length);
  metrics.gauge('parley_media_participants', 'Participants of these calls with their media open here', () =>
    live().reduce((sum, room) => sum + room.seats.length, 0),
  );
  metrics.gauge('parley_media_workers', 'Media workers that run', () => engine?.alive.length ?? 0);
  metrics.gauge('parley_media_load_ratio', 'Load of the media worker with the most room, 0 to 1', () => load);

  const lease = createPeriodic(renewMs, logger, 'the lease of the media node', async () => {
    const now = performance.now();
    if (engine && now - measured >= leastMeasuredMs) {
      load = await engine.measure(now - measured);
      measured = now;
    }
    const known = status;
    await reportNode(
      db,
      { id: node, state, detail: known, load, readyInMs: leftMs, rtpCapabilities: capabilities },
      leaseSeconds,
    );
    announced = known;
  });

  const review = createPeriodic(reviewMs, logger, 'reviewing the calls of the media node', async () => {
    const now = clock.monotonic();
    for (const [no, { room, since }] of hosted) if (isTest(no) && now - since > testMs) forget(no, room);
    if (hosted.size === 0) return;
    const looked = [...hosted]
      .filter(([no]) => !isTest(no))
      .map(([no, { room }]) => ({ no, room, seats: room.seats }));
    const live = await hostedCalls(
      db,
      looked.map(({ no }) => no),
      node,
    );
    for (const { no, room, seats } of looked) {
      const devices = live.get(no);
      if (!devices) forget(no, room);
      else for (const seat of seats) if (devices.get(seat.user) !== seat.device) room.vacate(seat);
    }
  });

  function forget(no: number, room: Room): void {
    room.close();
    if (hosted.get(no)?.room === room) hosted.delete(no);
  }

  const tell = (of: Hosted, seats: readonly SeatRef[], frame: EphemeralFrame): void => {
    for (const { user, session } of seats) services.sockets.toUsers(of.env, [user], frame, { only: session });
  };

  function host(env: number, call: number, callId: string): Hosted {
    const known = hosted.get(call);
    if (known && !known.room.closed) return known;
    if (!engine || state === 'failed') throw new ApiError('calls_unavailable');
    const one = { env, call, callId, since: clock.monotonic() } as Hosted;
    one.room = new Room(
      engine,
      {
        connected: (seat) => void later('connected', () => connected(one, seat)),
        flooded: (seat) => void later('flooded', () => putOut(one, seat)),
        producer: (producer, closed, except) =>
          tell(
            one,
            one.room.seats.filter((seat) => seat.user !== except),
            { t: 'call.producer', d: { callId, producer, ...(closed ? { closed } : {}) } },
          ),
        speakers: (levels, dominant) =>
          tell(one, one.room.seats, { t: 'call.speakers', d: { callId, levels, dominant } }),
      },
      () => clock.monotonic(),
      { echo: isTest(call) },
    );
    hosted.set(call, one);
    return one;
  }

  async function later(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      logger.warn({ err: error, what }, 'what became of a participant could not be noted');
    }
  }

  /** calls#answer: `joining` becomes `joined` when its media connects. */
  const connected = async (of: Hosted, seat: SeatRef): Promise<void> => {
    if (isTest(of.call)) return;
    await db.tx(async (tx) => {
      const locked = await sql.lockCall(tx, of.env, of.call);
      const one = locked?.call.participants.find((p) => p.usr === seat.user);
      if (locked && one && isIn(one) && one.device === seat.device)
        await change({ services }, tx, locked.call, withMove(locked.call, seat.user, 'connect', locked.at));
    });
  };

  const putOut = (of: Hosted, seat: SeatRef): Promise<void> =>
    db.tx(async (tx) => {
      of.room.leave(seat.user);
      const locked = await sql.lockCall(tx, of.env, of.call);
      if (!locked) return;
      const { call, at } = locked;
      const here = [{ user: seat.user, endedHere: 'removed' as const }];
      await change({ services }, tx, call, withMove(call, seat.user, 'leave', at), here);
    });

  async function answer(request: MediaRequest): Promise<MediaValue> {
    const { env, call, user } = request;
    if (request.method === 'call.open') {
      const { callId, userId, session, device, rtpCapabilities, resume = false, tcp = false } = request.d;
      const { room } = host(env, call, callId);
      // The user may have been put out, or have joined with another device, while the frame was on its way.
      const mayEnter = async () => isTest(call) || isInWith(db, request, device);
      return room.open({ user, userId, session, device }, rtpCapabilities, { resume, tcp }, mayEnter);
    }
    const one = hosted.get(call);
    if (request.method === 'mute') return one ? one.room.mute(user, request.d.source) : false;
    if (request.method === 'drop') {
      one?.room.leave(user);
      return null;
    }
    if (request.method === 'close') {
      if (one) forget(call, one.room);
      return null;
    }
    if (!one || one.room.closed) throw mediaEnded();
    // The compiler does not see that the frame's type and data still belong together.
    return one.room.answer(request.method, user, request.d.session, request.d as never);
  }

  async function prepare(): Promise<void> {
    const { workers, port, announcedAddress, codecs } = config.mediaNode;
    const { signal } = stopping;
    for (let pause = retryMs; !signal.aborted; pause = Math.min(longestRetryMs, pause * 2)) {
      try {
        const binary = await findWorkerBinary({
          signal,
          sha256: config.mediaNode.workerSha256,
          releases: config.mediaNode.workerUrl,
          progress: (progress) => {
            status = progress.text;
            leftMs = progress.leftMs;
            logger.debug({ leftMs: Math.round(leftMs) }, status);
          },
        });
        const local = ['127.0.0.1', '::1', 'localhost'].includes(config.host);
        const started = await Engine.start({
          binary,
          port,
          codecs,
          logger,
          workers: workers ?? availableParallelism(),
          listenIp: local ? '127.0.0.1' : '0.0.0.0',
          announcedAddress: announcedAddress ?? (local ? undefined : ownAddress()),
        });
        if (signal.aborted) return started.close();
        started.onDied = (worker) => {
          for (const [no, one] of hosted) {
            if (!one.room.uses(worker)) continue;
            const { seats } = one.room;
            forget(no, one.room);
            tell(one, seats, { t: 'call.media', d: { callId: one.callId } });
          }
        };
        capabilities = await started.rtpCapabilities();
        engine = started;
        measured = performance.now();
        state = 'ready';
        status = 'ready';
        leftMs = 0;
        lease.wake();
        logger.debug({ workers: started.alive.length, port }, 'calls are ready');
        return;
      } catch (error) {
        if (signal.aborted) return;
        state = 'failed';
        status = (error as Error).message;
        logger.error({ err: error }, 'calls are not available; trying again');
        await delay(pause, undefined, { signal, ref: false }).catch(() => undefined);
        if (!signal.aborted) state = 'preparing';
      }
    }
  }

  let preparing: Promise<void> | undefined;
  return {
    /** The status in words, for /readyz: what the others know of this node. */
    get status(): string {
      return announced;
    },
    start: (given: Services): void => {
      services = given;
      link.serve(async (request) => {
        try {
          return await answer(request);
        } catch (error) {
          // The media closed while it was being asked for, as when two participants leave at once.
          if ((error as Error).name !== 'InvalidStateError') throw error;
          throw mediaEnded();
        }
      });
      lease.start();
      review.start();
      preparing = prepare();
    },
    /** Takes no further calls, and moves its calls to other nodes if possible. */
    stop: async (): Promise<void> => {
      state = 'draining';
      lease.wake();
      stopping.abort();
      await options
        .evacuate()
        .catch((error: unknown) => logger.warn({ err: error }, 'calls could not be moved'));
      await preparing;
      await Promise.all([lease.stop(), review.stop()]);
      link.serve(null);
      for (const [no, { room }] of hosted) forget(no, room);
      engine?.close();
      await removeNode(db, node).catch(() => undefined);
    },
  };
}

/** The first address of this machine that is not its loopback. */
const ownAddress = (): string | undefined =>
  Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .find((one) => one.family === 'IPv4' && !one.internal)?.address;
