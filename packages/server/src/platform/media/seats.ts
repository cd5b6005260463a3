import type { types } from 'mediasoup';
import { ApiError, limits } from '@parley/protocol';
import type { AckData, CallProducer, CallSource, CallTransport, RtpCapabilities } from '@parley/protocol';
import { notFound } from '../api-errors.ts';
import type { Engine, EngineWorker } from './engine.ts';
import { Halls } from './halls.ts';
import type { Hall, HallEvents } from './halls.ts';

/**
 * The participants of one call whose media is open on this node. Each has a seat with two transports, one for what it
 * sends and one for what it receives. A seat is opened, taken over by another socket of the same device (`resume`), or
 * vacated; of one user they are opened one after the other.
 */

export interface SeatRef {
  user: number;
  userId: string;
  session: string;
  device: string;
}

export interface Sent {
  producer: types.Producer;
  source: CallSource;
}

export interface Seat extends SeatRef {
  hall: Hall;
  send: types.WebRtcTransport;
  recv: types.WebRtcTransport;
  rtpCapabilities: RtpCapabilities;
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

/** How many times at once one user may open media; the others wait for the first. */
const mostOpening = 4;

export interface SeatEvents extends HallEvents {
  /** The media of the seat connected for the first time. */
  connected(seat: SeatRef): void;
  /** The seat sends more frames than any client needs to. */
  flooded(seat: SeatRef): void;
  /** The user left, or opens the media again; the transports of the seat are about to close. */
  vacated(seat: Seat): void;
}

export class Seats {
  readonly #events: SeatEvents;
  readonly #now: () => number;
  readonly #halls: Halls;
  readonly #seats = new Map<number, Seat>();
  /** Users whose seats are being opened, one at a time per user. */
  readonly #opening = new Map<number, Opening>();
  closed = false;

  constructor(engine: Engine, events: SeatEvents, now: () => number) {
    this.#events = events;
    this.#halls = new Halls(engine, events);
    this.#now = now;
  }

  get seats(): Seat[] {
    return [...this.#seats.values()];
  }

  find(user: number): Seat | undefined {
    return this.#seats.get(user);
  }

  uses(worker: EngineWorker): boolean {
    return this.#halls.use(worker);
  }

  /**
   * Opens the seat of a user; with `resume`, the existing seat continues under the new socket.
   * @param mayEnter is asked once `leave` would be noticed, because one that came before the request left nothing here.
   */
  async open(
    ref: SeatRef,
    rtpCapabilities: RtpCapabilities,
    options: { resume: boolean; tcp: boolean },
    mayEnter: () => Promise<boolean>,
  ): Promise<AckData<'call.open'>> {
    const opening = this.#opening.get(ref.user) ?? { last: Promise.resolve(), waiting: 0, leaves: 0 };
    if (opening.waiting >= mostOpening)
      throw new ApiError('rate_limited', { message: 'The media is being opened already.' });
    this.#opening.set(ref.user, opening);
    opening.waiting++;
    const { leaves } = opening;
    const mine = opening.last.then(async () => {
      if (!(await mayEnter())) throw notFound('Call');
      return this.#open(ref, rtpCapabilities, options, () => opening.leaves > leaves);
    });
    opening.last = mine.catch(() => undefined);
    try {
      return await mine;
    } finally {
      if (--opening.waiting === 0) this.#opening.delete(ref.user);
    }
  }

  async #open(
    ref: SeatRef,
    rtpCapabilities: RtpCapabilities,
    { resume, tcp }: { resume: boolean; tcp: boolean },
    left: () => boolean,
  ) {
    if (left()) throw notFound('Call');
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
      if (this.closed || left()) throw notFound('Call');
      const seat: Seat = {
        ...ref,
        hall,
        send,
        recv,
        rtpCapabilities,
        sent: new Map(),
        sending: new Set(),
        received: new Map(),
        receiving: 0,
        connected: false,
        wholeAt: 0,
      };
      for (const transport of [send, recv])
        transport.on('dtlsstatechange', (state) => {
          if (state !== 'connected' || seat.connected) return;
          seat.connected = true;
          this.#events.connected(seat);
        });
      this.#seats.set(ref.user, seat);
      return { send: viewTransport(send), recv: viewTransport(recv), producers: this.#producers(ref.user) };
    } catch (error) {
      hall.seats--;
      for (const transport of made) transport.close();
      throw error;
    }
  }

  #producers(except: number): CallProducer[] {
    return [...this.#seats.values()].flatMap((seat) =>
      seat.user === except ? [] : [...seat.sent.values()].map((sent) => viewProducer(seat, sent)),
    );
  }

  /** The seat that a frame came from. */
  of(user: number, session: string): Seat {
    const seat = this.#seats.get(user);
    if (!seat || seat.session !== session)
      throw new ApiError('not_found', { message: 'Media session not found: open it with call.open.' });
    const now = this.#now();
    const { perSecond, burst } = limits.callFrames;
    seat.wholeAt = Math.max(seat.wholeAt, now) + 1_000 / perSecond;
    if (seat.wholeAt - now > (burst / perSecond) * 1_000) {
      this.#events.flooded(seat);
      throw new ApiError('rate_limited', { message: 'Too many frames: this participant was put out.' });
    }
    return seat;
  }

  /** Ends the media of a user, also that which is being opened. */
  leave(user: number): void {
    const opening = this.#opening.get(user);
    if (opening) opening.leaves++;
    const seat = this.#seats.get(user);
    if (seat) this.#vacate(seat);
  }

  /** Ends the media of this seat, unless the user has another by now. */
  vacate(seat: Seat): void {
    if (this.#seats.get(seat.user) === seat) this.#vacate(seat);
  }

  #vacate(seat: Seat): void {
    this.#seats.delete(seat.user);
    seat.hall.seats--;
    this.#events.vacated(seat);
    seat.send.close();
    seat.recv.close();
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

export const viewProducer = (seat: SeatRef, { producer, source }: Sent): CallProducer => ({
  id: producer.id,
  userId: seat.userId,
  source,
  kind: producer.kind,
  paused: producer.paused,
});
