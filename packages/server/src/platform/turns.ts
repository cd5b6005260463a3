/**
 * Fair turns. Work runs in lanes (one per tenant). How much runs at once is bounded in all and, more tightly, per
 * lane, so that others always find room. Work that cannot run yet waits in its lane. Lanes take turns by deficit
 * round robin: each turn is worth the same cost, so a lane with expensive work gets fewer turns than one with cheap
 * work, and a lane with a long queue delays only itself. When time is short, a lane that goes on and on must also rest.
 */

export interface TurnsOptions {
  /** How many pieces of work run at once. */
  slots: number;
  lane: {
    /** How many of one lane run at once. */
    slots: number;
    /** What the costs of one lane's running work may add up to. One piece always runs, whatever it costs. */
    cost: number;
    /** The share of `slots` and `cost` that is withheld at present, from 0 to 1. */
    pressure?: () => number;
    /** How many times as long as its work took a lane must be about it at present, the work included. */
    rest?: () => number;
    /** How many of one lane may wait; more are refused. */
    waiting: number;
  };
  /** How many may wait over all lanes; more are refused, except the first of a lane. */
  waiting: number;
  /** Milliseconds after which waiting work is refused. */
  waitMs: number;
  /** Makes the error for refused work. */
  refuse: () => Error;
  /** Milliseconds, from any start. */
  now?: () => number;
}

interface Job {
  cost: number;
  start: () => void;
}

interface Lane {
  readonly name: number | string;
  running: number;
  runningCost: number;
  /** The cost that is left of the lane's turn. */
  credit: number;
  /** When the lane has rested from all that it did. */
  restedAt: number;
  /** Runs while the lane has something to rest from. */
  rest: NodeJS.Timeout | undefined;
  readonly waiting: Set<Job>;
}

/** The cost that a lane may start in one turn. */
const quantum = 4;
/** Milliseconds of rest that a lane may put off, so that only who goes on and on rests at all. */
const restPutOffMs = 1_000;
/** Milliseconds of one piece of work that count at most: the rest of a longer one was spent waiting. */
const mostTookMs = 250;

export class Turns {
  readonly #options: TurnsOptions;
  readonly #lanes = new Map<number | string, Lane>();
  /** Lanes with waiting work; the first has the turn. */
  readonly #ring: Lane[] = [];
  readonly #now: () => number;
  #running = 0;
  #waiting = 0;

  constructor(options: TurnsOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Runs the work at once if there is room, otherwise when its lane's turn comes. */
  async run<T>(name: number | string, cost: number, work: () => Promise<T>): Promise<T> {
    let lane = this.#lanes.get(name);
    if (!lane)
      this.#lanes.set(
        name,
        (lane = {
          ...{ name, running: 0, runningCost: 0, credit: 0, restedAt: -Infinity, rest: undefined },
          waiting: new Set(),
        }),
      );
    if (lane.waiting.size === 0 && this.#running < this.#options.slots && this.#fits(lane, cost))
      this.#begin(lane, cost);
    else await this.#wait(lane, cost);
    const begun = this.#now();
    try {
      return await work();
    } finally {
      this.#tire(lane, this.#now() - begun);
      this.#running -= 1;
      lane.running -= 1;
      lane.runningCost -= cost;
      this.#dispatch();
      this.#forgetIdle(lane);
    }
  }

  #tire(lane: Lane, took: number): void {
    const rest = Math.min(mostTookMs, took) * (this.#options.lane.rest?.() ?? 0);
    if (rest > 0) lane.restedAt = Math.max(lane.restedAt, this.#now()) + rest;
  }

  /** Looks again when the lane may go on, or can be forgotten. */
  #awaitRest(lane: Lane, left: number): void {
    clearTimeout(lane.rest);
    lane.rest = setTimeout(
      () => {
        this.#dispatch();
        this.#forgetIdle(lane);
      },
      Math.ceil(left > restPutOffMs ? left - restPutOffMs : left),
    ).unref();
  }

  #fits(lane: Lane, cost: number): boolean {
    const left = lane.restedAt - this.#now();
    if (left > restPutOffMs) {
      this.#awaitRest(lane, left);
      return false;
    }
    if (lane.running === 0) return true;
    const { slots, cost: most, pressure = () => 0 } = this.#options.lane;
    const share = 1 - pressure();
    return lane.running < slots * share && lane.runningCost + cost <= most * share;
  }

  #begin(lane: Lane, cost: number): void {
    this.#running += 1;
    lane.running += 1;
    lane.runningCost += cost;
  }

  #wait(lane: Lane, cost: number): Promise<void> {
    const { waiting, waitMs, refuse, lane: own } = this.#options;
    const full = lane.waiting.size >= own.waiting || (this.#waiting >= waiting && lane.waiting.size > 0);
    if (full) return Promise.reject(refuse());
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#leave(lane, job);
        this.#forgetIdle(lane);
        reject(refuse());
      }, waitMs);
      const job: Job = {
        cost,
        start: () => {
          clearTimeout(timer);
          resolve();
        },
      };
      if (lane.waiting.size === 0) this.#ring.push(lane);
      lane.waiting.add(job);
      this.#waiting += 1;
    });
  }

  #leave(lane: Lane, job: Job): void {
    lane.waiting.delete(job);
    this.#waiting -= 1;
    if (lane.waiting.size > 0) return;
    lane.credit = 0;
    this.#ring.splice(this.#ring.indexOf(lane), 1);
  }

  #forgetIdle(lane: Lane): void {
    if (lane.running > 0 || lane.waiting.size > 0) return;
    const left = lane.restedAt - this.#now();
    if (left > 0) return this.#awaitRest(lane, left);
    // Later the name may belong to another lane.
    clearTimeout(lane.rest);
    this.#lanes.delete(lane.name);
  }

  /** Starts waiting work that may run now. */
  #dispatch(): void {
    // Lanes at their own bound are passed over; if all are, there is nothing to start.
    for (let passed = 0; this.#running < this.#options.slots && passed < this.#ring.length;) {
      const lane = this.#ring[0]!;
      const [job] = lane.waiting as Iterable<Job>;
      if (!this.#fits(lane, job!.cost)) {
        this.#ring.push(this.#ring.shift()!);
        passed += 1;
      } else if (lane.credit < job!.cost) {
        passed = 0;
        lane.credit += quantum;
        this.#ring.push(this.#ring.shift()!);
      } else {
        passed = 0;
        lane.credit -= job!.cost;
        this.#leave(lane, job!);
        this.#begin(lane, job!.cost);
        job!.start();
      }
    }
  }
}
