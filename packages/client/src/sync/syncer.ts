import type { Clock } from '../clock.ts';
import { Timer } from '../clock.ts';
import type { SyncResult } from '../types.ts';

export interface SyncerOptions {
  clock: Clock;
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
 * States: idle | running | running, again wanted | waiting (at most one run per second because of doubts). The cursor
 * is kept as long as the state it belongs to, and is stored with it.
 */
export class Syncer {
  #o: SyncerOptions;
  cursor: string | null = null;
  /** The epoch of the store that the cursor belongs to; the store has another one after it was restored. */
  epoch: string | undefined;
  #timer: Timer;
  #running: Promise<void> | null = null;
  #again = false;
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
  /** Something cannot be known from events alone, so sync soon. */
  soon(): void {
    if (!this.#on) return; // The next hello syncs anyway.
    if (this.#running) this.#again = true;
    else if (!this.#timer.pending)
      this.#timer.set(minIntervalMs, () => void this.now().catch(() => this.soon()));
  }
  async #run(timeoutMs: number | undefined, thorough: boolean): Promise<void> {
    const started = this.#o.begin();
    const { cursor } = this;
    const result = await this.#o.request(cursor, timeoutMs);
    // Without a cursor the answer contains everything, so nothing else that is known here is valid.
    result.fullReload ||= !cursor;
    this.cursor = result.cursor;
    this.#o.apply(result, started, thorough);
    await this.#o.details();
  }
}
