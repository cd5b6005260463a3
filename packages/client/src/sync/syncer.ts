import type { Clock } from '../clock.ts';
import { Timer } from '../clock.ts';
import { backoff } from '../connection/backoff.ts';
import type { ParleyError } from '../errors.ts';
import type { SyncResult } from '../types.ts';

export interface SyncerOptions {
  clock: Clock;
  random(): number;
  request(cursor: string | null, timeoutMs?: number): Promise<SyncResult>;
  /** Called before the request is sent; the result is passed to `apply` as `started`. */
  begin(): number;
  /** `thorough` is true for a new session, because what only ephemeral frames report may have changed too. */
  apply(result: SyncResult, started: number, thorough: boolean): void;
  /** Fetches what sync does not contain (names, last messages). */
  details(): Promise<void>;
}

const minIntervalMs = 1_000;

/**
 * sdk#procedure, and again whenever a count is in doubt.
 * States: idle | running | running, again wanted | waiting (at most one run per second because of doubts, and longer after
 * each run that failed). The cursor is kept as long as the state it belongs to, and is stored with it.
 */
export class Syncer {
  #o: SyncerOptions;
  cursor: string | null = null;
  /** The epoch of the store that the cursor belongs to; the store has another one after it was restored. */
  epoch: string | undefined;
  #timer: Timer;
  #running: Promise<void> | null = null;
  #again = false;
  #failures = 0;
  #pauseMs = 0;
  #on = false;
  constructor(options: SyncerOptions) {
    this.#o = options;
    this.#timer = new Timer(options.clock);
  }
  /** Called after hello; rejects if the server does not answer. */
  start(epoch?: string): Promise<void> {
    if (this.epoch && this.epoch !== epoch) this.cursor = null;
    this.epoch = epoch;
    this.#on = true;
    this.#running = null;
    return this.now(undefined, true);
  }
  stop(): void {
    this.#on = false;
    this.#timer.clear();
  }
  now(timeoutMs?: number, thorough = false): Promise<void> {
    this.#timer.clear();
    this.#again = false;
    const run = this.#run(timeoutMs, thorough).finally(() => {
      if (this.#running !== run) return;
      this.#running = null;
      if (this.#again) this.soon();
    });
    return (this.#running = run);
  }
  /** Something cannot be known from events alone, so sync soon; later after each `failure` in a row. */
  soon(failure?: unknown): void {
    if (failure)
      this.#pauseMs = Math.max(
        (failure as ParleyError).retryAfterMs ?? 0,
        backoff(++this.#failures, this.#o.random),
      );
    if (!this.#on) return; // The next hello syncs anyway.
    if (this.#running) this.#again = true;
    else if (!this.#timer.pending)
      this.#timer.set(
        Math.max(minIntervalMs, this.#pauseMs),
        () => void this.now().catch((e) => this.soon(e)),
      );
  }
  async #run(timeoutMs: number | undefined, thorough: boolean): Promise<void> {
    const started = this.#o.begin();
    const { cursor } = this;
    const failures = this.#failures;
    const result = await this.#o.request(cursor, timeoutMs);
    // Without a cursor the answer contains everything, so nothing else that is known here is valid.
    result.fullReload ||= !cursor;
    this.cursor = result.cursor;
    this.#o.apply(result, started, thorough);
    await this.#o.details();
    if (failures === this.#failures) this.#failures = this.#pauseMs = 0;
  }
}
