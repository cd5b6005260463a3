import type { Clock } from '../clock.ts';
import { Timer } from '../clock.ts';

type Items = { cid: string; seq: number }[];
const intervalMs = 1_000;
const maxItems = 200;

/**
 * sdk#delivered: sends `delivered` with the highest contiguous seq of each conversation, at most
 * once a second. States: idle --mark--> waiting (trailing edge) --flushed--> idle; marks are kept while offline.
 */
export class Delivered {
  #timer: Timer;
  #send: (items: Items) => boolean;
  #marks = new Map<string, number>();
  constructor(clock: Clock, send: (items: Items) => boolean) {
    this.#timer = new Timer(clock);
    this.#send = send;
  }
  mark(cid: string, seq: number): void {
    this.#marks.set(cid, Math.max(seq, this.#marks.get(cid) ?? 0));
    this.start();
  }
  drop(cid: string): void {
    this.#marks.delete(cid);
  }
  start(): void {
    if (!this.#timer.pending && this.#marks.size > 0) this.#timer.set(intervalMs, () => this.#flush());
  }
  stop(): void {
    this.#timer.clear();
  }
  #flush(): void {
    const items = [...this.#marks].slice(0, maxItems).map(([cid, seq]) => ({ cid, seq }));
    if (!this.#send(items)) return; // The next hello calls `start`.
    for (const { cid } of items) this.#marks.delete(cid);
    this.start();
  }
}
