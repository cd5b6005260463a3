import { Readable } from 'node:stream';
import { ApiError } from '@parley/protocol';
import type { TraceLine } from '@parley/protocol';
import type { Traces } from '../features/context.ts';
import { channels } from '../features/node-bus.ts';
import type { AskedTrace, NodeBus } from '../features/node-bus.ts';
import type { Clock, Ids, Timers } from '../platform/clock.ts';
import type { Hub } from './hub.ts';
import type { FrameTrace, LiveSession } from './local-user.ts';

/**
 * Traces: people who run an environment watch the frames of one user's sockets, without their content. The node that
 * was asked tells all nodes, and repeats it every few seconds. Each node records what goes over the user's sockets
 * and sends it back. A node that hears no more of a trace forgets it. For users who are not traced, each frame costs
 * one look at a field.
 */

/** How many traces run at once on this node, of one environment and in all. */
const mostOfOne = 5;
const mostInAll = 50;
/** How many lines a trace has, and how many one node sends per second. */
const mostLines = 2_000;
const linesPerSecond = 200;

const flushMs = 200;
const renewMs = 5_000;
const leaseMs = 15_000;
/** How many bytes may wait for the reader of the stream. */
const maxUnread = 256 * 1024;

/** What a node collects for one trace. */
interface Tap {
  id: string;
  /** The node that asked for the trace. */
  node: string;
  untilTick: number;
  lines: TraceLine[];
  /** How many lines were recorded in the second that began at `sinceTick`. */
  sinceTick: number;
  noted: number;
  dropped: number;
}

/** The traces of one user on this node; the user's sockets hold a reference to it. */
class UserTrace implements FrameTrace {
  readonly taps = new Map<string, Tap>();
  readonly env: number;
  readonly #node: string;
  readonly #clock: Clock;

  constructor(env: number, node: string, clock: Clock) {
    this.env = env;
    this.#node = node;
    this.#clock = clock;
  }

  sent(session: LiveSession, frame: Buffer): void {
    const head = (frame[1]! & 127) < 126 ? 2 : (frame[1]! & 127) === 126 ? 4 : 10;
    this.#note(
      session,
      'out',
      frame.length - head,
      () => JSON.parse(frame.toString('utf8', head)) as unknown,
    );
  }

  received(session: LiveSession, frame: object, bytes: number): void {
    this.#note(session, 'in', bytes, () => frame);
  }

  closed(session: LiveSession): void {
    this.#note(session, 'out', 0, () => ({ t: 'close', code: session.closeCode }));
  }

  #note(session: LiveSession, direction: 'in' | 'out', bytes: number, read: () => unknown): void {
    const tick = this.#clock.monotonic();
    let line: TraceLine | undefined;
    for (const tap of this.taps.values()) {
      if (tick - tap.sinceTick >= 1_000) {
        tap.sinceTick = tick;
        tap.noted = 0;
      }
      if (++tap.noted > linesPerSecond) tap.dropped++;
      else
        tap.lines.push(
          (line ??= {
            at: new Date(this.#clock.now()).toISOString(),
            direction,
            sessionId: session.id,
            node: this.#node,
            bytes,
            ...outline(read()),
          }),
        );
    }
  }
}

/** What kind of frame it is and what it refers to, never its content. */
function outline(frame: unknown): { t: string } & Partial<TraceLine> {
  const { t, e, cid, seq, id, re, code, d } = frame as Record<string, unknown>;
  const inner = (d ?? {}) as Record<string, unknown>;
  const about = cid ?? inner['cid'];
  const place = seq ?? inner['seq'];
  const isId = (value: unknown): value is string | number =>
    typeof value === 'string' || typeof value === 'number';
  return {
    t: String(t),
    ...(typeof e === 'string' ? { e } : {}),
    ...(typeof about === 'string' ? { cid: about } : {}),
    ...(Number.isSafeInteger(place) ? { seq: place as number } : {}),
    ...(isId(id) ? { id } : {}),
    ...(isId(re) ? { re } : {}),
    ...(isId(code) ? { code } : {}),
  };
}

/** A trace that was requested on this node. */
interface Trace {
  env: number;
  take(lines: TraceLine[], dropped: number): void;
  end(reason: 'time' | 'lines' | 'shutdown'): void;
}

export class Tracing implements Traces {
  readonly #bus: NodeBus;
  readonly #hub: Hub;
  readonly #node: string;
  readonly #clock: Clock;
  readonly #timers: Timers;
  readonly #ids: Ids;
  /** What is collected on this node, by user number. */
  readonly #users = new Map<number, UserTrace>();
  /** What was requested on this node, by trace id. */
  readonly #traces = new Map<string, Trace>();
  #stopFlushing: (() => void) | undefined;

  constructor(options: { bus: NodeBus; hub: Hub; node: string; clock: Clock; timers: Timers; ids: Ids }) {
    this.#bus = options.bus;
    this.#hub = options.hub;
    this.#node = options.node;
    this.#clock = options.clock;
    this.#timers = options.timers;
    this.#ids = options.ids;
    this.#bus.on('trace', (asked) => this.#asked(asked));
    this.#bus.on('traced', ({ id, lines, dropped }) => this.#traces.get(id)?.take(lines, dropped));
    options.hub.registry.traceOf = (env, user) => {
      const found = this.#users.get(user);
      return found?.env === env ? found : null;
    };
  }

  async open({ env, user, seconds, sessions }: Parameters<Traces['open']>[0]): Promise<Readable> {
    const own = [...this.#traces.values()].filter((trace) => trace.env === env).length;
    if (own >= mostOfOne || this.#traces.size >= mostInAll)
      throw new ApiError('rate_limited', { message: 'Too many traces are open: end one first.' });
    const id = this.#ids.secret(16);
    const stream = new Readable({ read: () => undefined });
    let left = mostLines;
    let unread = 0;
    const now = (): string => new Date(this.#clock.now()).toISOString();
    const write = (line: TraceLine): void => void stream.push(`${JSON.stringify(line)}\n`);
    const trace: Trace = {
      env,
      take: (lines, dropped) => {
        unread += dropped;
        for (const line of lines) {
          if (left === 0) return trace.end('lines');
          if (stream.readableLength > maxUnread) unread++;
          else {
            left--;
            write(line);
          }
        }
      },
      end: (reason) => {
        if (!this.#traces.has(id)) return;
        stop();
        write({ at: now(), t: 'trace.ended', reason, dropped: unread });
        stream.push(null);
      },
    };
    const ask = (ms: number): void => {
      const asked = { id, env, user, node: this.#node, ms };
      this.#asked(asked);
      this.#bus.publish('trace', asked, channels.allNodes);
    };
    const stops = [
      this.#timers.every(renewMs, () => {
        ask(leaseMs);
        write({ at: now(), t: 'trace.alive' });
      }),
      this.#timers.after(seconds * 1_000, () => {
        this.#flush();
        trace.end('time');
      }),
    ];
    const stop = (): void => {
      if (!this.#traces.delete(id)) return;
      for (const end of stops) end();
      ask(0);
    };
    this.#traces.set(id, trace);
    stream.once('close', stop);
    write({ at: now(), t: 'trace.started', sessions });
    try {
      // What other nodes collect comes back on this node's own channel.
      await this.#bus.subscribe([channels.node(this.#node)]);
    } catch (error) {
      stop();
      throw error;
    }
    ask(leaseMs);
    return stream;
  }

  /** Called at shutdown. */
  close(): void {
    for (const trace of [...this.#traces.values()]) trace.end('shutdown');
  }

  #asked({ id, env, user, node, ms }: AskedTrace): void {
    const found = this.#users.get(user);
    if (ms === 0) {
      if (found?.taps.delete(id) && found.taps.size === 0) this.#forget(user);
      return;
    }
    const tick = this.#clock.monotonic();
    const known = found?.taps.get(id);
    if (known) {
      known.untilTick = tick + ms;
      return;
    }
    const traced = found ?? new UserTrace(env, this.#node, this.#clock);
    // Other nodes have their own bounds, but this node enforces its own on whatever they ask for.
    if (traced.env !== env || traced.taps.size >= mostInAll || this.#users.size >= 20 * mostInAll) return;
    traced.taps.set(id, { id, node, untilTick: tick + ms, lines: [], sinceTick: tick, noted: 0, dropped: 0 });
    this.#users.set(user, traced);
    const here = this.#hub.registry.users.get(user);
    if (here?.env === env) here.trace = traced;
    this.#stopFlushing ??= this.#timers.every(flushMs, () => this.#flush());
  }

  #flush(): void {
    const tick = this.#clock.monotonic();
    for (const [user, { taps }] of this.#users) {
      for (const tap of taps.values()) {
        if (tap.lines.length > 0 || tap.dropped > 0) this.#deliver(tap);
        if (tap.untilTick < tick) taps.delete(tap.id);
      }
      if (taps.size === 0) this.#forget(user);
    }
  }

  #deliver(tap: Tap): void {
    const { id, node, lines, dropped } = tap;
    tap.lines = [];
    tap.dropped = 0;
    if (node === this.#node) this.#traces.get(id)?.take(lines, dropped);
    else this.#bus.publish('traced', { id, lines, dropped }, channels.node(node));
  }

  #forget(user: number): void {
    this.#users.delete(user);
    const here = this.#hub.registry.users.get(user);
    if (here) here.trace = null;
    if (this.#users.size > 0) return;
    this.#stopFlushing?.();
    this.#stopFlushing = undefined;
  }
}
