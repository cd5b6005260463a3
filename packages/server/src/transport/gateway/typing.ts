import { realtime } from '@parley/protocol';

/** At most this many (conversation, user) pairs are remembered; the oldest go first, which only lets a `start` through. */
const maxEntries = 50_000;
/** A little less than the client's own pace, so that its timer's jitter costs nothing. */
const throttleMs = realtime.typingThrottleMs - 500;
/** After a `stop` somebody may well begin anew, but start and stop in turns are a flood too. */
const restartMs = 1_000;

/** SPEC 4, socket rule 4: `start` at most once per 3 s; a `stop` is relayed when a `start` was. */
export class TypingThrottle {
  readonly #started = new Map<string, { at: number; typing: boolean }>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** True when the frame is to be relayed. */
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
