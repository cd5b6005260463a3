import { ApiError } from '@parley/protocol';
import { createBatcher, runApart } from '../platform/flow/batcher.ts';
import type { Batcher, BatcherOptions } from '../platform/flow/batcher.ts';
import { sleep } from '../platform/clock.ts';
import type { Timers } from '../platform/clock.ts';
import { isBadRow, isLockedOut } from '../platform/postgres/errors.ts';
import { WaitingQuota } from '../platform/flow/waiting-quota.ts';

/**
 * The group commit does not wait for a conversation that another transaction has locked. Such a conversation is
 * `blocked`, and its items wait here, in a lane of their own, while all others go on. Later items of the conversation
 * join its lane, so that order is kept.
 *
 * Every commit of another node and every edit locks a conversation for a moment, so a lane is first tried again a few
 * times soon, together with other lanes. If several nodes commit to one conversation without a pause, trying now and
 * then could fail for ever. So later each lane in turn also waits for a while in PostgreSQL's own queue for the lock,
 * which is first come, first served. Items that could not be committed in time are refused with service_unavailable.
 */

/** The answer for an item whose conversation another transaction has locked. */
export const blocked: unique symbol = Symbol('blocked');
export type Blocked = typeof blocked;

/** An item of the group commit, which belongs to one conversation. */
interface ForConversation {
  env: number;
  conversationId: string;
}

type Commit<I, O> = (items: I[], waitMs: number | null) => Promise<(O | Error | Blocked)[]>;

/** Milliseconds between two tries of a lane: 2, 4, 8, … 100. */
const firstPauseMs = 2;
const longestPauseMs = 100;
/** The first tries of a lane are made together with other lanes; later ones are made alone, and wait for the lock. */
const triesTogether = 3;
/** Milliseconds; longer than a healthy transaction locks a conversation. */
const lockWaitMs = 50;
const maxAgeMs = 5_000;
const maxOfConversation = 500;
const maxOfEnvironment = 2_500;
const maxInAll = 10_000;
/** How many items of a lane one try takes, and how many lanes are tried together. */
const itemsPerTry = 50;
const lanesPerTry = 20;

const keyOf = (item: ForConversation): string => `${item.env} ${item.conversationId}`;

/** A batcher whose `commit` may answer `blocked`. */
export function createLanedBatcher<I extends ForConversation, O>(
  options: Omit<BatcherOptions<I, O>, 'run' | 'badItem'> & {
    commit: Commit<I, O>;
    timers: Timers;
  },
): Batcher<I, O> {
  const commit: Commit<I, O> = async (items, waitMs) => {
    try {
      return await options.commit(items, waitMs);
    } catch (error) {
      // It is not known which of them could not be locked: each finds out in its lane.
      if (isLockedOut(error)) return items.map(() => blocked);
      throw error;
    }
  };
  const lanes = new Lanes(commit, options.timers);
  const batcher = createBatcher<I, O>({
    ...options,
    badItem: isBadRow,
    run: async (items) => {
      const free = items.filter((item) => !lanes.has(item));
      const answers = free.length > 0 ? await commit(free, null) : [];
      let next = 0;
      return items.map((item) => {
        const answer = item === free[next] ? answers[next++]! : blocked;
        return answer === blocked ? lanes.add(item) : answer;
      });
    },
  });
  return {
    add: batcher.add,
    get waiting() {
      return batcher.waiting + lanes.waiting;
    },
    idle: async () => {
      await batcher.idle();
      await lanes.idle();
    },
  };
}

interface Waiting<I, O> {
  item: I;
  since: number;
  resolve: (value: O) => void;
  reject: (error: unknown) => void;
}
/** Items of a lane to be tried once, unless it is too late. */
interface Patient<I> {
  items: I[];
  until: number;
}
interface Lane<I, O> {
  key: string;
  queue: Waiting<I, O>[];
  /** How many tries in a row found the conversation locked. */
  tries: number;
}

class Lanes<I extends ForConversation, O> {
  readonly #commit: Commit<I, O>;
  readonly #timers: Timers;
  readonly #lanes = new Map<string, Lane<I, O>>();
  readonly #quota = new WaitingQuota({ inAll: maxInAll, ofOne: maxOfEnvironment });
  readonly #together: Batcher<I[], (O | Error | Blocked)[]>;
  /** One lane at a time waits for the lock. Environments take turns, so that hopeless lanes delay only those of their own. */
  readonly #patient: Batcher<Patient<I>, (O | Error | Blocked)[]>;
  #onIdle: (() => void)[] = [];

  constructor(commit: Commit<I, O>, timers: Timers) {
    this.#commit = commit;
    this.#timers = timers;
    this.#together = createBatcher({
      maxBatch: lanesPerTry,
      maxWaiting: maxInAll,
      turns: { groupOf: (items: I[]) => items[0]!.env, maxWaiting: maxInAll },
      run: async (tries: I[][]) => {
        const answers = await this.#try(tries.flat(), null);
        let at = 0;
        return tries.map((items) => answers.slice(at, (at += items.length)));
      },
    });
    this.#patient = createBatcher({
      maxBatch: 1,
      maxWaiting: maxInAll,
      turns: { groupOf: ({ items }: Patient<I>) => items[0]!.env, maxWaiting: maxInAll },
      run: async (tries: Patient<I>[]) => {
        const { items, until } = tries[0]!;
        return [timers.monotonic() >= until ? items.map(() => blocked) : await this.#try(items, lockWaitMs)];
      },
    });
  }

  get waiting(): number {
    return this.#quota.count;
  }

  has(item: I): boolean {
    return this.#lanes.has(keyOf(item));
  }

  idle(): Promise<void> {
    return this.#lanes.size === 0
      ? Promise.resolve()
      : new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  add(item: I): Promise<O> {
    const answer = this.#enter(item);
    // The caller may look at the answer only later, when the rest of its batch is answered too.
    answer.catch(() => undefined);
    return answer;
  }

  async #enter(item: I): Promise<O> {
    const key = keyOf(item);
    let lane = this.#lanes.get(key);
    if ((lane && lane.queue.length >= maxOfConversation) || !this.#quota.enter(item.env)) throw busy();
    const isNew = !lane;
    if (!lane) this.#lanes.set(key, (lane = { key, queue: [], tries: 0 }));
    const { queue } = lane;
    const answer = new Promise<O>((resolve, reject) => {
      queue.push({ item, since: this.#timers.monotonic(), resolve, reject });
    });
    if (isNew) void this.#drive(lane);
    return answer;
  }

  /** Tries the lane until it is empty. */
  async #drive(lane: Lane<I, O>): Promise<void> {
    while (lane.queue.length > 0) {
      await sleep(this.#timers, Math.min(firstPauseMs * 2 ** lane.tries, longestPauseMs));
      const oldest = this.#timers.monotonic() - maxAgeMs;
      while (lane.queue.length > 0 && lane.queue[0]!.since <= oldest) this.#leave(lane).reject(busy());
      if (lane.queue.length === 0) break;
      const tried = lane.queue.slice(0, itemsPerTry).map((w) => w.item);
      const answers =
        lane.tries < triesTogether
          ? await this.#together.add(tried)
          : await this.#patient.add({ items: tried, until: lane.queue[0]!.since + maxAgeMs });
      lane.tries = answers.includes(blocked) ? lane.tries + 1 : 0;
      answers.forEach((answer, i) => {
        if (answer === blocked) return;
        const waiting = this.#leave(lane, tried[i]!);
        if (answer instanceof Error) waiting.reject(answer);
        else waiting.resolve(answer);
      });
    }
    this.#lanes.delete(lane.key);
    if (this.#lanes.size > 0) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  #leave(lane: Lane<I, O>, item = lane.queue[0]!.item): Waiting<I, O> {
    const index = lane.queue.findIndex((w) => w.item === item);
    this.#quota.leave(item.env);
    return lane.queue.splice(index, 1)[0]!;
  }

  #try(items: I[], waitMs: number | null): Promise<(O | Error | Blocked)[]> {
    return runApart(items, (some) => this.#commit(some, waitMs), isBadRow);
  }
}

const busy = (): ApiError =>
  new ApiError('service_unavailable', { message: 'The conversation is busy: try again.' });
