import { randomBytes } from 'node:crypto';
import { idPrefixes, ulid } from '@parley/protocol';
import type { IdKind } from '@parley/protocol';

export interface Clock {
  /**
   * Wall time in milliseconds since the epoch: for tokens, and for what people and other machines read. It may be set
   * back or ahead.
   */
  now(): number;
  /** Milliseconds since an arbitrary moment; it never jumps. For durations: time-outs, budgets, grace periods. */
  monotonic(): number;
}
export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };

/**
 * A monotonic clock with timers that go by it. The timers do not keep the process alive. Each method returns the
 * function that cancels its timer.
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

const poolBytes = 8_192;

/** Cuts random bytes from a larger draw, because ids are made by the thousand. */
export function pooledRandom(): RandomBytes {
  let pool = Buffer.alloc(0);
  let offset = 0;
  return (size) => {
    if (offset + size > pool.length) {
      pool = randomBytes(Math.max(poolBytes, size));
      offset = 0;
    }
    return pool.subarray(offset, (offset += size));
  };
}

export interface Ids {
  make(kind: IdKind): string;
  /** A random string of A-Za-z0-9, for keys and passwords. */
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
