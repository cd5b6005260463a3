import { realtime } from '@parley/protocol';

/**
 * At most this many (conversation, user) pairs are remembered. The oldest are forgotten first, which only lets a
 * `start` through.
 */
const maxEntries = 50_000;
/** Milliseconds, slightly less than the client's own interval, so that the jitter of its timer does no harm. */
const throttleMs = realtime.typingThrottleMs - 500;
/** Milliseconds. A user may start again after a `stop`, but many starts and stops in turn are a flood too. */
const restartMs = 1_000;

/** presence#typing-pace: `start` is relayed at most once per 3 s, a `stop` only after a relayed `start`. */
export class TypingThrottle {
  readonly #started = new Map<string, { at: number; typing: boolean }>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Returns true if the frame is to be relayed. */
  allows(cid: string, user: number, state: 'start' | 'stop'): boolean {
    const key = `${cid} ${user}`;
    const last = this.#started.get(key);
    if (state === 'stop') {
      const wasTyping = last?.typing === true;
      if (wasTyping) last.typing = false;
      return wasTyping;
    }
    const now = this.#now();
    if (last && now - last.at < (last.typing ? throttleMs : restartMs)) return false;
    this.#started.delete(key);
    this.#started.set(key, { at: now, typing: true });
    if (this.#started.size > maxEntries) this.#started.delete(this.#started.keys().next().value!);
    return true;
  }
}
