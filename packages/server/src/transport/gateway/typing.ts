import { realtime } from '@parley/protocol';

/** At most this many (conversation, user) pairs are remembered; the oldest go first, which only lets a `start` through. */
const maxEntries = 50_000;
/** A little less than the client's own pace, so that its timer's jitter costs nothing. */
const throttleMs = realtime.typingThrottleMs - 500;

/** SPEC 4, socket rule 4: `start` at most once per 3 s; a `stop` is relayed when a `start` was. */
export class TypingThrottle {
  readonly #started = new Map<string, number>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** True when the frame is to be relayed. */
  allows(cid: string, user: number, state: 'start' | 'stop'): boolean {
    const key = `${cid} ${user}`;
    if (state === 'stop') return this.#started.delete(key);
    const now = this.#now();
    const last = this.#started.get(key);
    if (last !== undefined && now - last < throttleMs) return false;
    this.#started.delete(key);
    this.#started.set(key, now);
    if (this.#started.size > maxEntries) this.#started.delete(this.#started.keys().next().value!);
    return true;
  }
}
