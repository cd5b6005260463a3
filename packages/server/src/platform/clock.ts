import { randomBytes } from 'node:crypto';
import { idPrefixes, ulid } from '@parley/protocol';
import type { IdKind } from '@parley/protocol';

export interface Clock {
  /** Wall time, in milliseconds since the epoch: for what people and other machines read, and for tokens. It may be set back or ahead. */
  now(): number;
  /** Milliseconds since some moment; it never jumps. For whatever has to last: time-outs, budgets, grace periods. */
  monotonic(): number;
}
export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };

/**
 * For whoever waits as well as looks at the time: timers that go by the monotonic clock. They do not keep the process alive. Each
 * returns the function that ends it.
 */
export interface Timers extends Pick<Clock, 'monotonic'> {
  every(ms: number, run: () => void): () => void;
  after(ms: number, run: () => void): () => void;
}
export const systemTimers: Timers = {
  monotonic: () => performance.now(),
  every: (ms, run) => {
    const timer = setInterval(run, ms).unref();
    return () => clearInterval(timer);
  },
  after: (ms, run) => {
    const timer = setTimeout(run, ms).unref();
    return () => clearTimeout(timer);
  },
};

export const sleep = (timers: Timers, ms: number): Promise<void> =>
  new Promise((resolve) => timers.after(ms, resolve));

export type RandomBytes = (size: number) => Uint8Array;

/** Random bytes cut from a larger draw: ids are made by the thousand. */
export function pooledRandom(poolSize = 8_192): RandomBytes {
  let pool = Buffer.alloc(0);
  let offset = 0;
  return (size) => {
    if (offset + size > pool.length) {
      pool = randomBytes(Math.max(poolSize, size));
      offset = 0;
    }
    return pool.subarray(offset, (offset += size));
  };
}

export interface Ids {
  make(kind: IdKind): string;
  /** Characters of A-Za-z0-9, for keys and passwords. */
  secret(length: number): string;
  random: RandomBytes;
}

const alphanumeric = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

export function createIds(clock: Pick<Clock, 'now'>, random: RandomBytes): Ids {
  return {
    make: (kind) => idPrefixes[kind] + ulid(clock.now(), random(10)),
    secret: (length) => {
      let out = '';
      while (out.length < length) {
        // 248 = 4 * 62: higher bytes would favour the first letters.
        for (const byte of random(length))
          if (byte < 248 && out.length < length) out += alphanumeric[byte % 62];
      }
      return out;
    },
    random,
  };
}
