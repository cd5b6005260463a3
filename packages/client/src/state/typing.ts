import type { Clock } from '../clock.ts';
import { Timer } from '../clock.ts';
import { Value } from '../store.ts';

const throttleMs = 3_000;
const expiryMs = 6_000;

/**
 * sdk#typing. Outgoing: silent --typing--> started (again at most every 3 s) --send or blur-->
 * silent. Incoming: a user is typing from `start` until `stop`, a message of that user, or 6 s of silence.
 */
export class Typing {
  readonly store = new Value<readonly string[]>([]);
  #clock: Clock;
  #send: (state: 'start' | 'stop') => void;
  /**
   * When the server was last told that this user types: 2 just now, 1 a while ago, 0 never, or so long ago that it
   * has expired at the receivers.
   */
  #told = 0;
  #timer: Timer;
  #typing = new Map<string, Timer>();
  constructor(clock: Clock, send: (state: 'start' | 'stop') => void) {
    this.#clock = clock;
    this.#send = send;
    this.#timer = new Timer(clock);
  }
  start(): void {
    if (this.#told > 1) return;
    this.#told = 2;
    this.#timer.set(throttleMs, () => {
      this.#told = 1;
      this.#timer.set(expiryMs - throttleMs, () => (this.#told = 0));
    });
    this.#send('start');
  }
  /** Sends nothing if the indicator has already expired at the receivers. */
  stop(): void {
    if (this.#told) this.#send('stop');
    this.#forget();
  }
  receive(userId: string, state: 'start' | 'stop'): void {
    const timer = this.#typing.get(userId) ?? new Timer(this.#clock);
    timer.clear();
    if (state === 'start') {
      this.#typing.set(userId, timer);
      timer.set(expiryMs, () => this.receive(userId, 'stop'));
    } else this.#typing.delete(userId);
    const users = [...this.#typing.keys()];
    if (users.join(' ') !== this.store.get().join(' ')) this.store.set(users);
  }
  /** Called when the connection is lost. */
  clear(): void {
    this.#forget();
    for (const userId of this.#typing.keys()) this.receive(userId, 'stop');
  }
  #forget(): void {
    this.#told = 0;
    this.#timer.clear();
  }
}
