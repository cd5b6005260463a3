import type { types } from 'mediasoup';
import { ApiError, limits } from '@parley/protocol';
import type { CallConsumer, CallProducer, CallSource, CallTransport } from '@parley/protocol';
import type { Engine, EngineWorker } from './engine.ts';
import { Halls } from './halls.ts';
import type { Hall } from './halls.ts';

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
  /** What is about to be sent, by source and kind: the place is taken before the worker is asked. */
  sending: Set<string>;
  received: Map<string, types.Consumer>;
  /** How many consumers are about to be made. */
  receiving: number;
  connected: boolean;
  /** Milliseconds; the time at which its budget of frames is full again. */
  wholeAt: number;
}

interface Opening {
  last: Promise<unknown>;
  waiting: number;
  /** How many times the user was put out meanwhile; who asked before that gets no seat. */
  leaves: number;
}

const mostReceived = 4 * 50;
/** How many times at once one user may open media; the others wait for the first. */
const mostOpening = 4;

const unknown = (what: string) => new ApiError('not_found', { message: `There is no such ${what}.` });

export class Room {
  readonly #events: RoomEvents;
  readonly #now: () => number;
  readonly #echo: boolean;
  readonly #halls: Halls;
  readonly #seats = new Map<number, Seat>();
  /** Users whose seats are being opened, one at a time per user. */
  readonly #opening = new Map<number, Opening>();
  readonly #piped = new Map<string, Promise<unknown>>();
  closed = false;

  /** @param options.echo lets a participant receive what it sends, to test a connection. */
  constructor(engine: Engine, events: RoomEvents, now: () => number, { echo = false } = {}) {
    this.#echo = echo;
    this.#events = events;
    this.#halls = new Halls(engine, events);
    this.#now = now;
  }

  get seats(): SeatRef[] {
    return [...this.#seats.values()];
  }

  uses(worker: EngineWorker): boolean {
    return this.#halls.use(worker);
  }

  /** Opens the seat of a user; with `resume`, the existing seat continues under the new socket. */
  async open(
    ref: SeatRef,
    rtpCapabilities: types.RtpCapabilities,
    options: { resume: boolean; tcp: boolean },
  ): Promise<{ send: CallTransport | null; recv: CallTransport | null; producers: CallProducer[] }> {
    const opening = this.#opening.get(ref.user) ?? { last: Promise.resolve(), waiting: 0, leaves: 0 };
    if (opening.waiting >= mostOpening)
      throw new ApiError('rate_limited', { message: 'The media is being opened already.' });
    this.#opening.set(ref.user, opening);
    opening.waiting++;
    const { leaves } = opening;
    const mine = opening.last.then(() =>
      this.#open(ref, rtpCapabilities, options, () => opening.leaves > leaves),
    );
    opening.last = mine.catch(() => undefined);
    try {
      return await mine;
    } finally {
      if (--opening.waiting === 0) this.#opening.delete(ref.user);
    }
  }

  async #open(
    ref: SeatRef,
    rtpCapabilities: types.RtpCapabilities,
    { resume, tcp }: { resume: boolean; tcp: boolean },
    left: () => boolean,
  ) {
    if (left()) throw unknown('call');
    const old = this.#seats.get(ref.user);
    if (resume && old?.device === ref.device && !old.send.closed) {
      old.session = ref.session;
      return { send: null, recv: null, producers: this.#producers(ref.user) };
    }
    if (old) this.#vacate(old);
    const hall = await this.#halls.place();
    const make = () =>
      hall.router.createWebRtcTransport({
        webRtcServer: hall.on.server,
        enableUdp: !tcp,
        enableTcp: true,
        preferUdp: true,
        initialAvailableOutgoingBitrate: 1_000_000,
      });
    const made: types.WebRtcTransport[] = [];
    try {
      const send = await make();
      made.push(send);
      const recv = await make();
      made.push(recv);
      await Promise.all([
        send.setMaxIncomingBitrate(limits.callIncomingBitrate),
        recv.setMaxOutgoingBitrate(limits.callOutgoingBitrate),
      ]);
      if (this.closed || left()) throw unknown('call');
      this.#seats.set(ref.user, this.#seatOn(hall, ref, rtpCapabilities, send, recv));
      return { send: viewTransport(send), recv: viewTransport(recv), producers: this.#producers(ref.user) };
    } catch (error) {
      hall.seats--;
      for (const transport of made) transport.close();
      throw error;
    }
  }

  #seatOn(
    hall: Hall,
    ref: SeatRef,
    rtpCapabilities: types.RtpCapabilities,
    send: types.WebRtcTransport,
    recv: types.WebRtcTransport,
  ): Seat {
    const seat: Seat = {
      ...ref,
      ...{ hall, send, recv, rtpCapabilities, sent: new Map(), sending: new Set(), received: new Map() },
      ...{ receiving: 0, connected: false, wholeAt: 0 },
    };
    for (const transport of [send, recv])
      transport.on('dtlsstatechange', (state) => {
        if (state !== 'connected' || seat.connected) return;
        seat.connected = true;
        this.#events.connected(seat);
      });
    return seat;
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
    // The worker compares fingerprints as text, in upper case; some clients write them in lower case.
    const fingerprints = dtlsParameters.fingerprints.map((f) => ({ ...f, value: f.value.toUpperCase() }));
    const transport = this.#transport(this.#seat(user, session), id);
    await refusing(transport.connect({ dtlsParameters: { ...dtlsParameters, fingerprints } }));
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
    const place = `${source} ${kind}`;
    if (
      seat.sending.has(place) ||
      [...seat.sent.values()].some((s) => s.source === source && s.producer.kind === kind)
    )
      throw new ApiError('invalid_request', { param: 'source', message: `This ${source} is sent already.` });
    seat.sending.add(place);
    let sent: Sent;
    try {
      const producer = await refusing(
        seat.send.produce({ kind, rtpParameters, paused, appData: { userId: seat.userId, user, source } }),
      );
      if (seat.send.closed) throw unknown('media session');
      sent = { producer, source };
      seat.sent.set(producer.id, sent);
    } finally {
      seat.sending.delete(place);
    }
    const { producer } = sent;
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
    this.#unpipe(id);
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
      if (seat.received.size + seat.receiving >= mostReceived)
        throw new ApiError('invalid_request', { message: `At most ${mostReceived} sources are received.` });
      seat.receiving++;
      try {
        const consumer = await this.#receive(seat, id, from.hall);
        if (!consumer) continue;
        const { kind, rtpParameters } = consumer;
        consumers.push({ id: consumer.id, producerId: id, kind, rtpParameters: { ...rtpParameters } });
      } finally {
        seat.receiving--;
      }
    }
    return { consumers };
  }

  /** Returns null if this device does not support the codec; it still receives everything else of the call. */
  async #receive(seat: Seat, producerId: string, from: Hall): Promise<types.Consumer | null> {
    await this.#pipe(producerId, from, seat.hall);
    if (seat.recv.closed) throw unknown('media session');
    const wanted = { producerId, rtpCapabilities: seat.rtpCapabilities };
    if (!seat.hall.router.canConsume(wanted)) return null;
    const consumer = await refusing(seat.recv.consume({ ...wanted, paused: true }));
    seat.received.set(consumer.id, consumer);
    consumer.observer.once('close', () => seat.received.delete(consumer.id));
    return consumer;
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

  /** Ends the media of a user, also that which is being opened. */
  leave(user: number): void {
    const opening = this.#opening.get(user);
    if (opening) opening.leaves++;
    const seat = this.#seats.get(user);
    if (seat) this.#vacate(seat);
  }

  #vacate(seat: Seat): void {
    this.#seats.delete(seat.user);
    seat.hall.seats--;
    for (const [id, sent] of seat.sent) {
      this.#events.producer(viewProducer(seat, sent), true, seat.user);
      this.#unpipe(id);
    }
    seat.send.close();
    seat.recv.close();
  }

  #unpipe(producerId: string): void {
    for (const key of this.#piped.keys()) if (key.startsWith(`${producerId} `)) this.#piped.delete(key);
  }

  close(): void {
    this.closed = true;
    this.#seats.clear();
    this.#halls.close();
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
