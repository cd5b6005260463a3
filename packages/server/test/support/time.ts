import type { Clock, Timers } from '../../src/platform/clock.ts';

interface Timer {
  at: number;
  /** Milliseconds between two runs; undefined: it runs once. */
  every?: number;
  run: () => void;
}

/** A clock that stands still until a test moves it, and timers that go by it. */
export class StandingTime implements Clock {
  /** A whole second: tokens know no smaller part of it. */
  #now = Math.floor(Date.now() / 1_000) * 1_000;
  /** By how much the wall clock was set ahead. */
  #ahead = 0;
  readonly #timers = new Set<Timer>();

  readonly now = (): number => this.#now + this.#ahead;
  readonly monotonic = (): number => this.#now;

  readonly timers: Timers = {
    monotonic: () => this.#now,
    every: (ms, run) => this.#add({ at: this.#now + ms, every: ms, run }),
    after: (ms, run) => this.#add({ at: this.#now + ms, run }),
  };

  #add(timer: Timer): () => void {
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** How long each timer still has. */
  get waiting(): number[] {
    return [...this.#timers].map((timer) => timer.at - this.#now);
  }

  /** Sets the wall clock ahead, or back; no time passes. */
  set(ms: number): void {
    this.#ahead += ms;
  }

  /** Lets time pass, and runs what falls due on the way, in its order. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      let next: Timer | undefined;
      for (const timer of this.#timers)
        if (timer.at <= end && timer.at < (next?.at ?? Infinity)) next = timer;
      if (!next) break;
      this.#now = next.at;
      if (next.every === undefined) this.#timers.delete(next);
      else next.at += next.every;
      next.run();
    }
    this.#now = end;
  }

  /** As `advance`; whoever wakes up on the way first does all that needs no time. */
  async pass(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      await rest();
      const next = Math.min(...this.waiting);
      if (this.#now + next > end) break;
      this.advance(next);
    }
    this.advance(end - this.#now);
    await rest();
  }
}

const rest = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
