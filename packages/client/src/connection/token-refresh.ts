import type { Clock } from '../clock.ts';
import { Timer } from '../clock.ts';
import { asError, isTransient } from '../errors.ts';
import type { ParleyError } from '../errors.ts';
import { backoff } from './backoff.ts';

const maxTries = 10;

interface TokenRefreshOptions {
  /** Obtains a token and sends it. */
  refresh(): Promise<unknown>;
  clock: Clock;
  random(): number;
  onError(error: ParleyError): void;
}

/**
 * sdk#token-refresh: on `token_expiring`, get a token and send `token.refresh`.
 * States: idle --expiring--> refreshing --done--> idle; refreshing --failed--> waiting --delay--> refreshing,
 * ten times at most: then the server closes with 4001 at expiry, which reconnects with a new token.
 */
export class TokenRefresh {
  #o: TokenRefreshOptions;
  #timer: Timer;
  #run = 0;
  constructor(options: TokenRefreshOptions) {
    this.#o = options;
    this.#timer = new Timer(options.clock);
  }
  expiring(): void {
    this.stop();
    void this.#try(this.#run, 0);
  }
  /** The socket has closed: the next one begins with a new token. */
  stop(): void {
    this.#run++;
    this.#timer.clear();
  }
  async #try(run: number, tries: number): Promise<void> {
    try {
      await this.#o.refresh();
    } catch (e) {
      if (run !== this.#run) return;
      const error = asError(e);
      this.#o.onError(error);
      if (tries + 1 >= maxTries || !isTransient(error)) return;
      this.#timer.set(1_000 + backoff(tries, this.#o.random), () => void this.#try(run, tries + 1));
    }
  }
}
