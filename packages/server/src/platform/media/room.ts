import type { types } from 'mediasoup';
import { ApiError, limits } from '@parley/protocol';
import type { CallConsumer, CallProducer, CallSource, CallTransport } from '@parley/protocol';
import type { Engine, EngineWorker } from './engine.ts';

/**
 * The media of one call on this node. Each participant has a seat: two transports, what it sends and what it
 * receives. A frame can name only what belongs to its own seat; the transport of another user is as unknown as one
 * that never existed.
 *
 * A call that outgrows a worker continues on another: seats are spread over routers, and what is sent on one router
 * is piped to those whose seats want it.
 */

export interface SeatRef {
  user: number;
  userId: string;
  session: string;
  device: string;
}

export interface RoomEvents {
  /** The media of the seat connected for the first time. */
  connected(seat: SeatRef): void;
  /** Goes to all seats but that of `except`. */
  producer(producer: CallProducer, closed: boolean, except: number | null): void;
  speakers(levels: { userId: string; level: number }[], dominant: string | null): void;
  /** The seat sends more frames than any client needs to. */
  flooded(seat: SeatRef): void;
}

interface Sent {
  producer: types.Producer;
  source: CallSource;
}

interface Seat extends SeatRef {
  hall: Hall;
  send: types.WebRtcTransport;
  recv: types.WebRtcTransport;
  rtpCapabilities: types.RtpCapabilities;
  sent: Map<string, Sent>;
  received: Map<string, types.Consumer>;
  connected: boolean;
  /** Milliseconds; the time at which its budget of frames is full again. */
  wholeAt: number;
}

/** A router of this call, on one worker. */
interface Hall {
  router: types.Router;
  on: EngineWorker;
  levels: types.AudioLevelObserver;
  dominant: types.ActiveSpeakerObserver;
  seats: number;
}

/** If all routers have this many seats, the next seat is on another worker, if there is one. */
const seatsPerWorker = 12;
const mostSent = 4;
const mostReceived = 4 * 50;
const levelsMs = 800;
/** Decibels; a quieter participant is not speaking. */
const quietest = -60;

const unknown = (what: string) => new ApiError('not_found', { message: `There is no such ${what}.` });

export class Room {
  readonly #engine: Engine;
  readonly #events: RoomEvents;
  readonly #now: () => number;
  readonly #echo: boolean;
  readonly #halls: Hall[] = [];
  readonly #seats = new Map<number, Seat>();
  /** Users whose seats are being opened, one at a time per user. */
  readonly #opening = new Map<number, Promise<unknown>>();
  readonly #piped = new Map<string, Promise<unknown>>();
  #dominant: string | null = null;
  #making: Promise<unknown> = Promise.resolve();
  closed = false;

  /** @param options.echo lets a participant receive what it sends, to test a connection. */
  constructor(engine: Engine, events: RoomEvents, now: () => number, { echo = false } = {}) {
    this.#echo = echo;
    this.#engine = engine;
    this.#events = events;
    this.#now = now;
  }

  get seats(): SeatRef[] {
    return [...this.#seats.values()];
  }

  uses(worker: EngineWorker): boolean {
    return this.#halls.some((hall) => hall.on === worker);
  }

  /** Opens the seat of a user; with `resume`, the existing seat continues under the new socket. */
  async open(
    ref: SeatRef,
    rtpCapabilities: types.RtpCapabilities,
    options: { resume: boolean; tcp: boolean },
  ): Promise<{ send: CallTransport | null; recv: CallTransport | null; producers: CallProducer[] }> {
    await this.#opening.get(ref.user)?.catch(() => undefined);
    const opening = this.#open(ref, rtpCapabilities, options);
    this.#opening.set(ref.user, opening);
    try {
      return await opening;
    } finally {
      if (this.#opening.get(ref.user) === opening) this.#opening.delete(ref.user);
    }
  }

  async #open(
    ref: SeatRef,
    rtpCapabilities: types.RtpCapabilities,
    { resume, tcp }: { resume: boolean; tcp: boolean },
  ) {
    const old = this.#seats.get(ref.user);
    if (resume && old?.device === ref.device && !old.send.closed) {
      old.session = ref.session;
      return { send: null, recv: null, producers: this.#producers(ref.user) };
    }
    if (old) this.leave(ref.user);
    const hall = await this.#hall();
    const make = () =>
      hall.router.createWebRtcTransport({
        webRtcServer: hall.on.server,
        enableUdp: !tcp,
        enableTcp: true,
        preferUdp: true,
        initialAvailableOutgoingBitrate: 1_000_000,
      });
    const [send, recv] = await Promise.all([make(), make()]);
    await Promise.all([
      send.setMaxIncomingBitrate(limits.callIncomingBitrate),
      recv.setMaxOutgoingBitrate(limits.callOutgoingBitrate),
    ]);
    if (this.closed) throw unknown('call');
    const seat: Seat = {
      ...ref,
      ...{ hall, send, recv, rtpCapabilities, sent: new Map(), received: new Map() },
      ...{ connected: false, wholeAt: 0 },
    };
    hall.seats++;
    this.#seats.set(ref.user, seat);
    for (const transport of [send, recv])
      transport.on('dtlsstatechange', (state) => {
        if (state !== 'connected' || seat.connected) return;
        seat.connected = true;
        this.#events.connected(seat);
      });
    return { send: viewTransport(send), recv: viewTransport(recv), producers: this.#producers(ref.user) };
  }

  /** Halls are created one after the other: two created at once could be on the same worker, and could not be piped then. */
  #hall(): Promise<Hall> {
    const made = this.#making.then(() => this.#makeHall());
    this.#making = made.catch(() => undefined);
    return made;
  }

  async #makeHall(): Promise<Hall> {
    const free = this.#halls.find((hall) => hall.seats < seatsPerWorker);
    if (free) return free;
    const made = await this.#engine.router(this.#halls.map((hall) => hall.on));
    if (!made) {
      const least = this.#halls.toSorted((a, b) => a.seats - b.seats)[0];
      if (least) return least;
      throw new ApiError('calls_unavailable');
    }
    const [levels, dominant] = await Promise.all([
      made.router.createAudioLevelObserver({ maxEntries: 10, threshold: quietest, interval: levelsMs }),
      made.router.createActiveSpeakerObserver({ interval: 300 }),
    ]);
    levels.on('volumes', (volumes) =>
      this.#events.speakers(
        volumes.flatMap(({ producer, volume }) => {
          const userId = producer.appData['userId'] as string | undefined;
          return userId === undefined
            ? []
            : [{ userId, level: Math.max(0.01, Math.round((1 + volume / -quietest) * 100) / 100) }];
        }),
        this.#dominant,
      ),
    );
    levels.on('silence', () => this.#events.speakers([], this.#dominant));
    dominant.on('dominantspeaker', ({ producer }) => {
      this.#dominant = (producer.appData['userId'] as string | undefined) ?? null;
    });
    const hall: Hall = { ...made, levels, dominant, seats: 0 };
    this.#halls.push(hall);
    return hall;
  }

  #producers(except: number): CallProducer[] {
    return [...this.#seats.values()].flatMap((seat) =>
      seat.user === except ? [] : [...seat.sent.values()].map((sent) => viewProducer(seat, sent)),
    );
  }

  /** The seat that a frame came from. */
  #seat(user: number, session: string): Seat {
    const seat = this.#seats.get(user);
    if (!seat || seat.session !== session) throw unknown('media session: open it with call.open');
    const now = this.#now();
    const { perSecond, burst } = limits.callFrames;
    seat.wholeAt = Math.max(seat.wholeAt, now) + 1_000 / perSecond;
    if (seat.wholeAt - now > (burst / perSecond) * 1_000) {
      this.#events.flooded(seat);
      throw new ApiError('rate_limited', { message: 'Too many frames: this participant was put out.' });
    }
    return seat;
  }

  #transport(seat: Seat, id: string): types.WebRtcTransport {
    if (seat.send.id === id) return seat.send;
    if (seat.recv.id === id) return seat.recv;
    throw unknown('transport');
  }

  async connect(
    user: number,
    session: string,
    id: string,
    dtlsParameters: types.DtlsParameters,
  ): Promise<void> {
    await refusing(this.#transport(this.#seat(user, session), id).connect({ dtlsParameters }));
  }

  async restart(user: number, session: string, id: string): Promise<{ iceParameters: types.IceParameters }> {
    return { iceParameters: await this.#transport(this.#seat(user, session), id).restartIce() };
  }

  async produce(
    user: number,
    session: string,
    what: { source: CallSource; kind: types.MediaKind; rtpParameters: types.RtpParameters; paused: boolean },
  ): Promise<{ producerId: string }> {
    const seat = this.#seat(user, session);
    const { source, kind, rtpParameters, paused } = what;
    if ((source === 'mic' && kind === 'video') || (source === 'camera' && kind === 'audio'))
      throw new ApiError('invalid_request', { param: 'kind', message: `A ${source} sends no ${kind}.` });
    if (
      seat.sent.size >= mostSent ||
      [...seat.sent.values()].some((s) => s.source === source && s.producer.kind === kind)
    )
      throw new ApiError('invalid_request', { param: 'source', message: `This ${source} is sent already.` });
    const producer = await refusing(
      seat.send.produce({ kind, rtpParameters, paused, appData: { userId: seat.userId, user, source } }),
    );
    if (seat.send.closed) throw unknown('media session');
    const sent = { producer, source };
    seat.sent.set(producer.id, sent);
    if (kind === 'audio' && source === 'mic') {
      await seat.hall.levels.addProducer({ producerId: producer.id });
      await seat.hall.dominant.addProducer({ producerId: producer.id });
    }
    this.#events.producer(viewProducer(seat, sent), false, user);
    return { producerId: producer.id };
  }

  async pause(user: number, session: string, id: string, paused: boolean): Promise<void> {
    const seat = this.#seat(user, session);
    const sent = seat.sent.get(id);
    if (!sent) throw unknown('producer');
    await this.#setPaused(seat, sent, paused, user);
  }

  async #setPaused(seat: Seat, sent: Sent, paused: boolean, except: number | null): Promise<void> {
    if (sent.producer.paused === paused) return;
    await (paused ? sent.producer.pause() : sent.producer.resume());
    this.#events.producer(viewProducer(seat, sent), false, except);
  }

  /** Mutes by the server; everybody sees it, the participant too. Returns false if the user's media is not connected. */
  async mute(user: number, source: CallSource): Promise<boolean> {
    const seat = this.#seats.get(user);
    if (!seat?.connected) return false;
    for (const sent of seat.sent.values())
      if (sent.source === source) await this.#setPaused(seat, sent, true, null);
    return true;
  }

  stop(user: number, session: string, id: string): void {
    const seat = this.#seat(user, session);
    const sent = seat.sent.get(id);
    if (!sent) throw unknown('producer');
    seat.sent.delete(id);
    sent.producer.close();
    this.#events.producer(viewProducer(seat, sent), true, user);
  }

  async consume(
    user: number,
    session: string,
    ids: readonly string[],
  ): Promise<{ consumers: CallConsumer[] }> {
    const seat = this.#seat(user, session);
    const consumers: CallConsumer[] = [];
    for (const id of new Set(ids)) {
      const from = [...this.#seats.values()].find((s) => s.sent.has(id));
      if (!from || (from === seat && !this.#echo)) continue;
      if (seat.received.size >= mostReceived)
        throw new ApiError('invalid_request', { message: `At most ${mostReceived} sources are received.` });
      await this.#pipe(id, from.hall, seat.hall);
      if (seat.recv.closed) throw unknown('media session');
      // This device does not support the codec; it still receives everything else of the call.
      if (!seat.hall.router.canConsume({ producerId: id, rtpCapabilities: seat.rtpCapabilities })) continue;
      const consumer = await refusing(
        seat.recv.consume({ producerId: id, rtpCapabilities: seat.rtpCapabilities, paused: true }),
      );
      seat.received.set(consumer.id, consumer);
      consumer.observer.once('close', () => seat.received.delete(consumer.id));
      const { kind, rtpParameters } = consumer;
      consumers.push({ id: consumer.id, producerId: id, kind, rtpParameters: { ...rtpParameters } });
    }
    return { consumers };
  }

  async #pipe(producerId: string, from: Hall, to: Hall): Promise<void> {
    if (from === to) return;
    const key = `${producerId} ${to.router.id}`;
    let piping = this.#piped.get(key);
    if (!piping) {
      piping = from.router.pipeToRouter({ producerId, router: to.router });
      this.#piped.set(key, piping);
      piping.catch(() => this.#piped.delete(key));
    }
    await piping;
  }

  async layers(
    user: number,
    session: string,
    id: string,
    want: { paused?: boolean; spatialLayer?: number; temporalLayer?: number },
  ): Promise<void> {
    const consumer = this.#seat(user, session).received.get(id);
    if (!consumer) throw unknown('consumer');
    if (want.spatialLayer !== undefined && consumer.type !== 'simple')
      await consumer.setPreferredLayers({
        spatialLayer: want.spatialLayer,
        ...(want.temporalLayer === undefined ? {} : { temporalLayer: want.temporalLayer }),
      });
    if (want.paused !== undefined && want.paused !== consumer.paused)
      await (want.paused ? consumer.pause() : consumer.resume());
  }

  async stats(user: number, session: string) {
    const seat = this.#seat(user, session);
    const transports = await Promise.all(
      [seat.send, seat.recv].map(async (transport) => {
        const [stats] = await transport.getStats();
        return {
          id: transport.id,
          iceState: transport.iceState,
          dtlsState: transport.dtlsState,
          protocol: transport.iceSelectedTuple?.protocol ?? null,
          bytesReceived: stats?.bytesReceived ?? 0,
          bytesSent: stats?.bytesSent ?? 0,
        };
      }),
    );
    return { transports };
  }

  /** Ends the media of a seat. */
  leave(user: number): void {
    const seat = this.#seats.get(user);
    if (!seat) return;
    this.#seats.delete(user);
    seat.hall.seats--;
    for (const [id, sent] of seat.sent) {
      this.#events.producer(viewProducer(seat, sent), true, user);
      for (const key of this.#piped.keys()) if (key.startsWith(`${id} `)) this.#piped.delete(key);
    }
    seat.send.close();
    seat.recv.close();
  }

  close(): void {
    this.closed = true;
    this.#seats.clear();
    for (const { router } of this.#halls) router.close();
  }
}

const viewTransport = (t: types.WebRtcTransport): CallTransport => ({
  id: t.id,
  iceParameters: { ...t.iceParameters },
  iceCandidates: t.iceCandidates.map((candidate) => ({ ...candidate })),
  dtlsParameters: { ...t.dtlsParameters },
});

const viewProducer = (seat: SeatRef, { producer, source }: Sent): CallProducer => ({
  id: producer.id,
  userId: seat.userId,
  source,
  kind: producer.kind,
  paused: producer.paused,
});

/** An error of the media server is the client's fault, as long as the server is alive. */
async function refusing<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw new ApiError('invalid_request', {
      message: `The media server refused it: ${(error as Error).message.slice(0, 200)}.`,
    });
  }
}
