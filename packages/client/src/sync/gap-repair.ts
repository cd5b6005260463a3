import type { Clock } from '../clock.ts';
import { Timer } from '../clock.ts';
import { backoff } from '../connection/backoff.ts';
import { asError, isGone } from '../errors.ts';
import type { ParleyError } from '../errors.ts';

export interface Sequenced {
  seq: number;
}

export interface GapRepairOptions<E extends Sequenced> {
  clock: Clock;
  random(): number;
  /** Events after a seq, ascending. */
  fetch(after: number): Promise<{ data: E[]; hasMore: boolean }>;
  /**
   * Loads the latest page. The function that it resolves with is called once, with whether the page is still wanted.
   * It puts the page in place and returns a seq: the page shows the effects of all events up to that seq.
   */
  reload(): Promise<(wanted: boolean) => number>;
  /** Another attempt follows. */
  failed?(error: ParleyError): void;
  apply(event: E): void;
  /** Called after each step in which `lastSeq` moved. */
  onProgress(): void;
  /** The conversation can no longer be read. */
  onGone(error: ParleyError): void;
}

const maxHeld = 1_000;
const maxFailures = 3;

/**
 * sdk#gap, for one conversation.
 *
 *   paused --resume--> following
 *   following: seq = lastSeq + 1 is applied, at or below it dropped, above it held --> fetching
 *   fetching: events after lastSeq until nothing is missing --> following
 *   fetching --410, three failures, an impossible answer--> reloading --page loaded--> following
 *   any --pause--> paused (held events stay);  reloading --not a member--> stopped
 */
export class GapRepair<E extends Sequenced> {
  /** -1 until the first page is loaded. */
  lastSeq = -1;
  #o: GapRepairOptions<E>;
  #held = new Map<number, E>();
  #target = -1;
  #lost = true;
  #run: object | null = null;
  #paused = true;
  #waiting: (() => void)[] = [];
  #timer: Timer;

  /** @param from the position at which the stream begins; without it, the latest page is loaded. */
  constructor(options: GapRepairOptions<E>, from?: number) {
    this.#o = options;
    if (from !== undefined) {
      this.lastSeq = from;
      this.#lost = false;
    }
    this.#timer = new Timer(options.clock);
  }

  push(event: E): void {
    if (event.seq <= this.lastSeq) return;
    this.#target = Math.max(this.#target, event.seq);
    this.#held.set(event.seq, event);
    if (this.#held.size > maxHeld) this.#lose();
    if (!this.#lost && this.#drain()) this.#o.onProgress();
    this.#start();
  }

  /** The server says how far the stream goes. */
  reach(seq: number): void {
    this.#target = Math.max(this.#target, seq);
    this.#start();
  }

  /** `resync_required`: the latest page is loaded again. */
  reload(): void {
    this.#lose();
    this.#run = null;
    this.#start();
  }

  /** The server's stream went back, so nothing that was known about it is valid. */
  restart(): void {
    this.lastSeq = this.#target = -1;
    this.reload();
  }

  resume(): void {
    this.#paused = false;
    this.#start();
  }

  pause(): void {
    this.#paused = true;
    this.#run = null;
    this.#timer.clear();
    this.#settle();
  }

  #lose(): void {
    this.#lost = true;
    this.#held.clear();
  }

  /** Applies held events that follow lastSeq without a gap. */
  #drain(): boolean {
    const before = this.lastSeq;
    for (const seq of this.#held.keys()) if (seq <= this.lastSeq) this.#held.delete(seq);
    for (let event; (event = this.#held.get(this.lastSeq + 1));) {
      this.#held.delete(event.seq);
      this.#applied(event);
    }
    return this.lastSeq !== before;
  }

  #applied(event: E): void {
    this.lastSeq = event.seq;
    this.#o.apply(event);
  }

  #start(): void {
    if (this.#paused || this.#run) return;
    if (this.#lost || this.#target > this.lastSeq) void this.#work((this.#run = {}));
  }

  async #work(run: object): Promise<void> {
    let failures = 0;
    while (run === this.#run && (this.#lost || this.#target > this.lastSeq)) {
      const reloading = this.#lost;
      const before = this.lastSeq;
      let error: ParleyError | null = null;
      try {
        if (reloading) {
          const place = await this.#o.reload();
          const position = place(run === this.#run);
          if (run !== this.#run) return;
          this.#lost = false;
          this.lastSeq = position;
        } else {
          const { data, hasMore } = await this.#o.fetch(before);
          if (run !== this.#run) return;
          for (const event of data) {
            if (event.seq > this.lastSeq + 1) this.#lose();
            if (this.#lost) break;
            if (event.seq > this.lastSeq) this.#applied(event);
          }
          if (hasMore && this.lastSeq === before) this.#lose();
        }
        if (!this.#lost) this.#drain();
        this.#o.onProgress();
      } catch (e) {
        if (run !== this.#run) return;
        error = asError(e);
        if (isGone(error)) {
          this.pause();
          return this.#o.onGone(error);
        }
        this.#o.failed?.(error);
      }
      if (reloading ? !error : this.lastSeq > before) {
        failures = 0;
        continue;
      }
      failures++;
      if (!reloading && (failures >= maxFailures || error?.code === 'resync_required')) {
        this.#lost = true;
        failures = 0;
      } else {
        const wait = Math.max(error?.retryAfterMs ?? 0, backoff(failures, this.#o.random));
        await new Promise<void>((resolve) => this.#timer.set(wait, resolve));
      }
    }
    if (run !== this.#run) return;
    this.#run = null;
    this.#settle();
  }

  /** Resolves when no event is missing, or when paused. */
  settled(): Promise<void> {
    return this.#run ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve();
  }

  #settle(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
