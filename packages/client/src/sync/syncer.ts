import type { Clock } from '../clock.ts';
import { Timer } from '../clock.ts';
import type { SyncResult } from '../types.ts';

export interface SyncerOptions {
  clock: Clock;
  request(cursor: string | null, timeoutMs?: number): Promise<SyncResult>;
  /** `started` was given by `begin` before the request left. */
  begin(): number;
  /** `thorough`: a new session, so what only ephemeral frames tell may have changed as well. */
  apply(result: SyncResult, started: number, thorough: boolean): void;
  /** What sync does not carry (names, last messages) is fetched here. */
  details(): Promise<void>;
}

const minIntervalMs = 1_000;

/**
 * SPEC 4, client sync procedure, step 1, and again whenever a count is in doubt.
 * States: idle | running | running, again wanted | waiting (at most one doubt-run a second). The cursor
 * lives as long as the state it belongs to, and is stored with it.
 */
export class Syncer {
  #o: SyncerOptions;
  cursor: string | null = null;
  /** The life of the store that the cursor is of. */
  epoch: string | undefined;
  #timer: Timer;
  #running: Promise<void> | null = null;
  #again = false;
  #on = false;
  constructor(options: SyncerOptions) {
    this.#o = options;
    this.#timer = new Timer(options.clock);
  }
  /** After hello: rejects when the server does not answer. */
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
  /** Something cannot be known from events alone. */
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
    // Without a cursor it is all that there is: nothing else that is known here holds.
    result.fullReload ||= !cursor;
    this.cursor = result.cursor;
    this.#o.apply(result, started, thorough);
    await this.#o.details();
  }
}
