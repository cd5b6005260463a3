import type { Clock } from '../clock.ts';
import { Timer } from '../clock.ts';
import { Value } from '../store.ts';

const throttleMs = 3_000;
const expiryMs = 6_000;

/**
 * SPEC 4, socket behaviour rule 4. Out: silent --typing--> started (again at most every 3 s) --send or
 * blur--> silent. In: a user is typing from `start` until `stop`, a message of theirs, or 6 s of silence.
 */
export class Typing {
  readonly store = new Value<readonly string[]>([]);
  #clock: Clock;
  #send: (state: 'start' | 'stop') => void;
  #startedAt = -Infinity;
  #until = new Map<string, number>();
  #timer: Timer;
  constructor(clock: Clock, send: (state: 'start' | 'stop') => void) {
    this.#clock = clock;
    this.#send = send;
    this.#timer = new Timer(clock);
  }
  start(): void {
    const now = this.#clock.now();
    if (now - this.#startedAt < throttleMs) return;
    this.#startedAt = now;
    this.#send('start');
  }
  /** Nothing goes out when the receivers' own expiry has already said it. */
  stop(): void {
    if (this.#clock.now() - this.#startedAt < expiryMs) this.#send('stop');
    this.#startedAt = -Infinity;
  }
  receive(userId: string, state: 'start' | 'stop'): void {
    if (state === 'start') this.#until.set(userId, this.#clock.now() + expiryMs);
    else if (!this.#until.delete(userId)) return;
    this.#update();
  }
  clear(): void {
    this.#until.clear();
    this.#update();
  }
  #update(): void {
    const now = this.#clock.now();
    for (const [userId, until] of this.#until) if (until <= now) this.#until.delete(userId);
    const users = [...this.#until.keys()];
    if (users.join(' ') !== this.store.get().join(' ')) this.store.set(users);
    this.#timer.clear();
    if (users.length > 0) this.#timer.set(Math.min(...this.#until.values()) - now, () => this.#update());
  }
}
