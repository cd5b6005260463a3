import { realtime } from '@parley/protocol';
import type { Typist } from '../features/presence/sql.ts';
import { createBatcher, readPace } from '../platform/flow/batcher.ts';
import type { Batcher } from '../platform/flow/batcher.ts';

/**
 * Typing of one user in one conversation: stopped --`start`--> started --`stop`--> stopped. Where the store must be asked
 * whether the user may type, stopped --`start`--> asked --it may--> started. A `stop` before the answer, or that it may not,
 * ends it.
 */
type State = 'asked' | 'started' | 'stopped';

/**
 * At most this many (conversation, user) pairs are remembered. The oldest are forgotten first, which only lets a
 * `start` through.
 */
const maxEntries = 50_000;
/** Milliseconds, slightly less than the client's own interval, so that the jitter of its timer does no harm. */
const throttleMs = realtime.typingThrottleMs - 500;
/** Milliseconds. A user may start again after a `stop`, but many starts and stops in turn are a flood too. */
const restartMs = 1_000;
/** Questions to the store; what comes beyond is not relayed. */
const questions = { maxBatch: 100, maxWaiting: 1_000, ofOne: 200 };

export class Typing {
  readonly #entries = new Map<string, { at: number; state: State }>();
  readonly #now: () => number;
  readonly #ask: Batcher<Typist, boolean>;

  constructor(now: () => number, mayType: (typists: readonly Typist[]) => Promise<boolean[]>) {
    this.#now = now;
    this.#ask = createBatcher<Typist, boolean>({
      ...questions,
      turns: { groupOf: ({ env }) => env, maxWaiting: questions.ofOne },
      pace: readPace(),
      run: mayType,
    });
  }

  /**
   * presence#typing-pace: `start` is relayed at most once per 3 s, a `stop` only after a relayed `start`.
   * @param asks whether a `start` needs `permits` before it is relayed.
   */
  allows(cid: string, user: number, frame: 'start' | 'stop', asks = false): boolean {
    const key = `${cid} ${user}`;
    const last = this.#entries.get(key);
    if (frame === 'stop') {
      const started = last?.state === 'started';
      if (last) last.state = 'stopped';
      return started;
    }
    const now = this.#now();
    if (last && now - last.at < (last.state === 'stopped' ? restartMs : throttleMs)) return false;
    this.#entries.delete(key);
    this.#entries.set(key, { at: now, state: asks ? 'asked' : 'started' });
    if (this.#entries.size > maxEntries) this.#entries.delete(this.#entries.keys().next().value!);
    return true;
  }

  /** Whether a `start` that was allowed may be relayed. What the store does not answer, it may not. */
  async permits(typist: Typist): Promise<boolean> {
    const may = await this.#ask.add(typist).catch(() => false);
    const entry = this.#entries.get(`${typist.cid} ${typist.user}`);
    if (entry?.state !== 'asked') return false;
    entry.state = may ? 'started' : 'stopped';
    return may;
  }
}
