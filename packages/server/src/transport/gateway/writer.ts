import type { Timers } from '../../platform/clock.ts';
import { Pace } from '../../platform/pace.ts';

/** A write costs as much as a dozen frames in it, so it is worth waiting the longer, the more frames a socket gets meanwhile. */
const writeMsPerRate = 1;
const writeMsPerFrame = 18;
const writeMaxMs = 45;
/** Bytes gathered, of all sockets together, that wait no longer. */
const maxGathered = 8 * 1024 * 1024;

/**
 * Collects the sockets that have something to send and writes them all at once: at the end of the tick, or under load some
 * milliseconds after the time before, because several frames in one write cost little more than one.
 */
export class Writer<S extends { flush(): void }> {
  #dirty: S[] = [];
  #scheduled = false;
  #frames = 0;
  #bytes = 0;
  /** Frames in one write, smoothed. */
  #perSocket = 1;
  /** What was joined last: the members of a conversation mostly get the same. */
  #last: { frames: Buffer[]; bytes: Buffer } | null = null;
  readonly #pace: Pace;
  readonly #timers: Timers;
  readonly #onOverflow: (session: S) => void;
  /** All that was gathered is written. */
  onFlushed: () => void = () => undefined;

  constructor(timers: Timers, onOverflow: (session: S) => void) {
    this.#timers = timers;
    this.#onOverflow = onOverflow;
    const most = (): number => Math.min(writeMaxMs, this.#perSocket * writeMsPerFrame);
    this.#pace = new Pace(writeMsPerRate, most, () => timers.monotonic());
  }

  /** Milliseconds between two times; 0 when nothing waits. */
  get spacing(): number {
    return this.#pace.spacing;
  }

  joined(frames: Buffer[]): Buffer {
    const last = this.#last;
    if (last?.frames.length === frames.length && frames.every((frame, i) => frame === last.frames[i]))
      return last.bytes;
    const bytes = Buffer.concat(frames);
    this.#last = { frames, bytes };
    return bytes;
  }

  /** A frame was queued; `session` when it is the first for its socket. */
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

  overflowed(session: S): void {
    this.#onOverflow(session);
  }
}
