import type { Clock } from '../clock.ts';
import { ParleyError } from '../errors.ts';

interface Pending {
  resolve(d: unknown): void;
  reject(e: ParleyError): void;
  timer: unknown;
}

/**
 * Requests of one socket that wait for their ack or error. States of a request: waiting -> acked | refused | timed
 * out | lost.
 */
export class Requests {
  #clock: Clock;
  #pending = new Map<number, Pending>();
  #nextId = 1;
  constructor(clock: Clock) {
    this.#clock = clock;
  }
  add(send: (id: number) => void, timeoutMs: number): Promise<unknown> {
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      const timer = this.#clock.setTimeout(() => {
        this.#pending.delete(id);
        reject(new ParleyError('timeout', 'The server did not answer in time.'));
      }, timeoutMs);
      this.#pending.set(id, { resolve, reject, timer });
      send(id);
    });
  }
  ack(re: unknown, d: unknown): void {
    this.#take(re)?.resolve(d);
  }
  error(re: unknown, error: ParleyError): boolean {
    const pending = this.#take(re);
    pending?.reject(error);
    return pending !== undefined;
  }
  lose(error: ParleyError): void {
    for (const id of [...this.#pending.keys()]) this.#take(id)!.reject(error);
  }
  #take(re: unknown): Pending | undefined {
    const pending = this.#pending.get(Number(re));
    if (!pending) return undefined;
    this.#pending.delete(Number(re));
    this.#clock.clearTimeout(pending.timer);
    return pending;
  }
}
