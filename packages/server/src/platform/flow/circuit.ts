/**
 * Keeps calls away from a server that does not answer.
 *
 *   closed --10 failures in a row, or half of at least 20 calls in 10 s failed--> open
 *   open --5 s--> trial: one call is made, the others are still refused
 *   trial --it succeeds--> closed;  --it fails--> open;  --it was not made--> open, and the next call tries
 *
 * The outcome of a call counts only in the state in which the call began.
 */

export const circuitRules = {
  inARow: 10,
  leastCalls: 20,
  failedShare: 0.5,
  windowMs: 10_000,
  openMs: 5_000,
};

/** A call that may be made; its outcome must be given to `ended`. */
export interface Pass {
  readonly epoch: number;
}

/** How a call ended; `unmade`: it was not made after all. */
export type CallEnd = 'succeeded' | 'failed' | 'unmade';

interface Second {
  at: number;
  calls: number;
  failures: number;
}

export class Circuit {
  readonly #now: () => number;
  #state: 'closed' | 'open' | 'trial' = 'closed';
  #epoch = 0;
  #openedAt = 0;
  #inARow = 0;
  /** Counts by second, oldest first: as many as the window has, and one. */
  #seconds: Second[] = [];

  /** @param now milliseconds of a clock that never jumps. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Milliseconds until a call may be made; 0 if one may now. */
  get waitMs(): number {
    if (this.#state === 'closed') return 0;
    return Math.max(0, this.#openedAt + circuitRules.openMs - this.#now());
  }

  /** Asks to make a call; null if it must not be made. */
  begin(): Pass | null {
    if (this.#state === 'trial' || this.waitMs > 0) return null;
    if (this.#state === 'open') this.#state = 'trial';
    return { epoch: this.#epoch };
  }

  /** Whether a call that has waited may still be made: the circuit has not opened since. */
  holds({ epoch }: Pass): boolean {
    return epoch === this.#epoch;
  }

  /** Returns what the outcome changed: `closed`, `opened`, or null. A trial that failed opens it again. */
  ended({ epoch }: Pass, end: CallEnd): 'opened' | 'closed' | null {
    if (epoch !== this.#epoch) return null;
    if (this.#state === 'trial') {
      if (end === 'succeeded') return this.#close();
      if (end === 'failed') return this.#open();
      this.#state = 'open';
      return null;
    }
    if (end === 'unmade') return null;
    const second = this.#second();
    second.calls += 1;
    if (end === 'succeeded') {
      this.#inARow = 0;
      return null;
    }
    second.failures += 1;
    this.#inARow += 1;
    return this.#isBad() ? this.#open() : null;
  }

  #second(): Second {
    const now = this.#now();
    const at = Math.floor(now / 1_000);
    const oldest = at - circuitRules.windowMs / 1_000;
    this.#seconds = this.#seconds.filter((second) => second.at > oldest);
    let last = this.#seconds.at(-1);
    if (last?.at !== at) this.#seconds.push((last = { at, calls: 0, failures: 0 }));
    return last;
  }

  #isBad(): boolean {
    if (this.#inARow >= circuitRules.inARow) return true;
    let [calls, failures] = [0, 0];
    for (const second of this.#seconds) {
      calls += second.calls;
      failures += second.failures;
    }
    return calls >= circuitRules.leastCalls && failures >= calls * circuitRules.failedShare;
  }

  #open(): 'opened' {
    this.#epoch += 1;
    this.#state = 'open';
    this.#openedAt = this.#now();
    return 'opened';
  }

  #close(): 'closed' {
    this.#epoch += 1;
    this.#state = 'closed';
    this.#inARow = 0;
    this.#seconds = [];
    return 'closed';
  }
}
