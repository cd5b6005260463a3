import type { types } from 'mediasoup';
import { ApiError } from '@parley/protocol';
import type {
  AckData,
  CallConsumer,
  CallFrameType,
  CallProducer,
  CallSource,
  FrameData,
} from '@parley/protocol';
import { invalid, notFound } from '../api-errors.ts';
import type { Engine } from './engine.ts';
import type { Hall } from './halls.ts';
import { Seats, viewProducer } from './seats.ts';
import type { Seat, SeatEvents, Sent } from './seats.ts';

/**
 * The media of one call on this node: what its participants send and receive. A frame can name only what belongs to
 * the seat that it came from; the transport of another user is as unknown as one that never existed.
 *
 * A call that outgrows a worker continues on another: seats are spread over routers, and what is sent on one router
 * is piped to those whose seats want it.
 */

export interface RoomEvents extends Omit<SeatEvents, 'vacated'> {
  /** Goes to all seats but that of `except`. */
  producer(producer: CallProducer, closed: boolean, except: number | null): void;
}

/** What a frame asks for. */
type Asked<T extends CallFrameType> = Omit<FrameData<T>, 'callId'>;
type Frame = Exclude<CallFrameType, 'call.open' | 'call.test'>;
type Frames = { [T in Frame]: (seat: Seat, d: Asked<T>) => AckData<T> | Promise<AckData<T>> };

const mostReceived = 4 * 50;

export class Room extends Seats {
  readonly #events: RoomEvents;
  readonly #echo: boolean;
  readonly #piped = new Map<string, Promise<unknown>>();

  /** @param options.echo lets a participant receive what it sends, to test a connection. */
  constructor(engine: Engine, events: RoomEvents, now: () => number, { echo = false } = {}) {
    super(engine, { ...events, vacated: (seat) => this.#vacated(seat) }, now);
    this.#echo = echo;
    this.#events = events;
  }

  #transport(seat: Seat, id: string): types.WebRtcTransport {
    if (seat.send.id === id) return seat.send;
    if (seat.recv.id === id) return seat.recv;
    throw notFound('Transport');
  }

  /** Answers a frame of a user's socket. */
  async answer<T extends Frame>(t: T, user: number, session: string, d: Asked<T>): Promise<AckData<T>> {
    const frames: Partial<Frames> = this.#frames;
    // Otherwise a frame of a later version.
    if (!frames[t]) throw new ApiError('invalid_frame');
    return frames[t](this.of(user, session), d);
  }

  readonly #frames: Frames = {
    'call.connect': async (seat, { transportId, dtlsParameters }) => {
      // The worker compares fingerprints as text, in upper case; some clients write them in lower case.
      const fingerprints = dtlsParameters.fingerprints.map((f) => ({ ...f, value: f.value.toUpperCase() }));
      const transport = this.#transport(seat, transportId);
      await refusing(transport.connect({ dtlsParameters: { ...dtlsParameters, fingerprints } }));
      return {};
    },

    'call.restart': async (seat, { transportId }) => ({
      iceParameters: await this.#transport(seat, transportId).restartIce(),
    }),

    'call.produce': async (seat, { source, kind, rtpParameters, paused = false }) => {
      if ((source === 'mic' && kind === 'video') || (source === 'camera' && kind === 'audio'))
        throw invalid('kind', `A ${source} sends no ${kind}.`);
      const place = `${source} ${kind}`;
      if (
        seat.sending.has(place) ||
        [...seat.sent.values()].some((s) => s.source === source && s.producer.kind === kind)
      )
        throw invalid('source', `This ${source} is sent already.`);
      seat.sending.add(place);
      let sent: Sent;
      try {
        const producer = await refusing(
          seat.send.produce({
            kind,
            // mediasoup's types name the extensions that it knows; it ignores the others.
            rtpParameters: rtpParameters as types.RtpParameters,
            paused,
            appData: { userId: seat.userId, user: seat.user, source },
          }),
        );
        if (seat.send.closed) throw notFound('Media session');
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
      this.#events.producer(viewProducer(seat, sent), false, seat.user);
      return { producerId: producer.id };
    },

    'call.pause': async (seat, { producerId, paused }) => {
      await this.#setPaused(seat, sentOf(seat, producerId), paused, seat.user);
      return {};
    },

    'call.close': (seat, { producerId }) => {
      const sent = sentOf(seat, producerId);
      seat.sent.delete(producerId);
      this.#unpipe(producerId);
      sent.producer.close();
      this.#events.producer(viewProducer(seat, sent), true, seat.user);
      return {};
    },

    'call.consume': async (seat, { producerIds }) => {
      const consumers: CallConsumer[] = [];
      for (const id of new Set(producerIds)) {
        const from = this.seats.find((s) => s.sent.has(id));
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
    },

    'call.layers': async (seat, { consumerId, ...want }) => {
      const consumer = seat.received.get(consumerId);
      if (!consumer) throw notFound('Consumer');
      if (want.spatialLayer !== undefined && consumer.type !== 'simple')
        await consumer.setPreferredLayers({
          spatialLayer: want.spatialLayer,
          ...(want.temporalLayer === undefined ? {} : { temporalLayer: want.temporalLayer }),
        });
      if (want.paused !== undefined && want.paused !== consumer.paused)
        await (want.paused ? consumer.pause() : consumer.resume());
      return {};
    },

    'call.stats': async (seat) => {
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
    },
  };

  async #setPaused(seat: Seat, sent: Sent, paused: boolean, except: number | null): Promise<void> {
    if (sent.producer.paused === paused) return;
    await (paused ? sent.producer.pause() : sent.producer.resume());
    this.#events.producer(viewProducer(seat, sent), false, except);
  }

  /** Mutes by the server; everybody sees it, the participant too. Returns false if the user's media is not connected. */
  async mute(user: number, source: CallSource): Promise<boolean> {
    const seat = this.find(user);
    if (!seat?.connected) return false;
    for (const sent of seat.sent.values())
      if (sent.source === source) await this.#setPaused(seat, sent, true, null);
    return true;
  }

  /** Returns null if this device does not support the codec; it still receives everything else of the call. */
  async #receive(seat: Seat, producerId: string, from: Hall): Promise<types.Consumer | null> {
    await this.#pipe(producerId, from, seat.hall);
    if (seat.recv.closed) throw notFound('Media session');
    const wanted = { producerId, rtpCapabilities: seat.rtpCapabilities as types.RtpCapabilities };
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

  #vacated(seat: Seat): void {
    for (const [id, sent] of seat.sent) {
      this.#events.producer(viewProducer(seat, sent), true, seat.user);
      this.#unpipe(id);
    }
  }

  #unpipe(producerId: string): void {
    for (const key of this.#piped.keys()) if (key.startsWith(`${producerId} `)) this.#piped.delete(key);
  }
}

function sentOf(seat: Seat, producerId: string): Sent {
  const sent = seat.sent.get(producerId);
  if (!sent) throw notFound('Producer');
  return sent;
}

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
