import type { Timers } from '../../platform/clock.ts';
import { Pace } from '../../platform/pace.ts';
import type { Pressure } from '../../platform/pressure.ts';

/**
 * How long a write may wait when the process is under full pressure, in milliseconds: `writeMsPerRate` for each frame per millisecond, at most
 * `writeMsPerFrame` for each frame that a socket gets in one write, and never more than `writeMaxMs`. A write costs
 * as much as a dozen frames in it, so waiting pays off the more, the more frames a socket gets meanwhile.
 */
const writeMsPerRate = 1;
const writeMsPerFrame = 18;
const writeMaxMs = 45;
/** When this many bytes are collected for all sockets together, they are written at once. */
const maxGathered = 8 * 1024 * 1024;

/**
 * Collects the sockets that have something to send and writes to all of them at once: at the end of the tick or,
 * under pressure (platform/pressure.ts), up to 45 ms after the last time, because several frames in one write cost
 * little more than one.
 */
export class Writer<S extends { flush(): void }> {
  #dirty: S[] = [];
  #scheduled = false;
  #frames = 0;
  #bytes = 0;
  /** The smoothed number of frames in one write. */
  #perSocket = 1;
  /** The frames joined last: the members of a conversation mostly get the same. */
  #last: { frames: Buffer[]; bytes: Buffer } | null = null;
  readonly #pace: Pace;
  readonly #timers: Timers;
  readonly overflowed: (session: S) => void;
  /** Called when everything collected was written. */
  onFlushed: () => void = () => undefined;

  constructor(timers: Timers, overflowed: (session: S) => void, pressure?: Pressure) {
    this.#timers = timers;
    this.overflowed = overflowed;
    this.#pace = new Pace({
      msPerRate: writeMsPerRate,
      mostMs: () => Math.min(writeMaxMs, this.#perSocket * writeMsPerFrame),
      now: () => timers.monotonic(),
      pressure,
    });
  }

  joined(frames: Buffer[]): Buffer {
    const last = this.#last;
    if (last?.frames.length === frames.length && frames.every((frame, i) => frame === last.frames[i]))
      return last.bytes;
    const bytes = Buffer.concat(frames);
    this.#last = { frames, bytes };
    return bytes;
  }

  /** A frame was queued; `session` is given if it is the first frame for its socket. */
  add(session: S | null, bytes: number): void {
    this.#frames++;
    this.#bytes += bytes;
    if (session) this.#dirty.push(session);
    if (this.#bytes > maxGathered) return this.#flush();
    if (this.#scheduled) return;
    this.#scheduled = true;
    const wait = this.#pace.wait();
    if (wait > 0) this.#timers.after(wait, this.#due);
    else setImmediate(this.#due);
  }

  readonly #due = (): void => {
    this.#scheduled = false;
    this.#flush();
  };

  #flush(): void {
    this.#pace.begin(this.#frames);
    const sessions = this.#dirty;
    if (sessions.length > 0) this.#perSocket += (this.#frames / sessions.length - this.#perSocket) / 4;
    this.#frames = this.#bytes = 0;
    this.#dirty = [];
    for (const session of sessions) session.flush();
    this.#last = null;
    this.onFlushed();
  }
}
