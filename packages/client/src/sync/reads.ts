import type { Clock } from '../clock.ts';
import { Timer } from '../clock.ts';
import { asError, isTransient } from '../errors.ts';
import type { ParleyError } from '../errors.ts';

export interface ReadsOptions {
  clock: Clock;
  send(cid: string, seq: number): Promise<unknown>;
  /** The server has stored the mark. */
  onDone(cid: string): void;
  onError(error: ParleyError): void;
}

const retryMs = 2_000;

/**
 * Read marks on their way to the server; only the highest of a conversation counts (sdk#delivered).
 * States of a mark: waiting --online--> in flight --ack--> (gone), --lost--> waiting, --transient error--> waiting 2
 * s.
 */
export class Reads {
  #o: ReadsOptions;
  #marks = new Map<string, number>();
  #inFlight = new Set<string>();
  #online = false;
  #timer: Timer;
  constructor(options: ReadsOptions) {
    this.#o = options;
    this.#timer = new Timer(options.clock);
  }
  has(cid: string): boolean {
    return this.#marks.has(cid);
  }
  mark(cid: string, seq: number): void {
    if (seq <= (this.#marks.get(cid) ?? -1)) return;
    this.#marks.set(cid, seq);
    void this.#flush(cid);
  }
  drop(cid: string): void {
    this.#marks.delete(cid);
  }
  online(): void {
    this.#online = true;
    for (const cid of [...this.#marks.keys()]) void this.#flush(cid);
  }
  offline(): void {
    this.#online = false;
    this.#timer.clear();
  }
  async #flush(cid: string): Promise<void> {
    const seq = this.#marks.get(cid);
    if (!this.#online || seq === undefined || this.#inFlight.has(cid)) return;
    this.#inFlight.add(cid);
    try {
      await this.#o.send(cid, seq);
      if (this.#marks.get(cid) === seq) this.#marks.delete(cid);
      this.#o.onDone(cid);
    } catch (e) {
      const error = asError(e);
      if (isTransient(error)) {
        this.#inFlight.delete(cid);
        if (this.#online) this.#timer.set(error.retryAfterMs ?? retryMs, () => this.online());
        return;
      }
      if (error.code !== 'disconnected') {
        this.#marks.delete(cid);
        this.#o.onError(error);
        this.#o.onDone(cid);
      }
    }
    this.#inFlight.delete(cid);
    // After a lost connection, `online` may have been called while this mark was still in flight.
    if (this.#online) void this.#flush(cid);
  }
}
