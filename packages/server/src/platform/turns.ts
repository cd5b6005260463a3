/**
 * Fair turns. Work runs in lanes (one per tenant). How much runs at once is bounded in all and, more tightly, per
 * lane, so that others always find room. Work that cannot run yet waits in its lane. Lanes take turns by deficit
 * round robin: each turn is worth the same cost, so a lane with expensive work gets fewer turns than one with cheap
 * work, and a lane with a long queue delays only itself.
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
    /** How many of one lane may wait; more are refused. */
    waiting: number;
  };
  /** How many may wait over all lanes; more are refused, except the first of a lane. */
  waiting: number;
  /** Milliseconds after which waiting work is refused. */
  waitMs: number;
  /** Makes the error for refused work. */
  refuse: () => Error;
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
  readonly waiting: Set<Job>;
}

/** The cost that a lane may start in one turn. */
const quantum = 4;

export class Turns {
  readonly #options: TurnsOptions;
  readonly #lanes = new Map<number | string, Lane>();
  /** Lanes with waiting work; the first has the turn. */
  readonly #ring: Lane[] = [];
  #running = 0;
  #waiting = 0;

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Runs the work at once if there is room, otherwise when its lane's turn comes. */
  async run<T>(name: number | string, cost: number, work: () => Promise<T>): Promise<T> {
    let lane = this.#lanes.get(name);
    if (!lane) {
      lane = { name, running: 0, runningCost: 0, credit: 0, waiting: new Set() };
      this.#lanes.set(name, lane);
    }
    if (lane.waiting.size === 0 && this.#running < this.#options.slots && this.#fits(lane, cost))
      this.#begin(lane, cost);
    else await this.#wait(lane, cost);
    try {
      return await work();
    } finally {
      this.#running -= 1;
      lane.running -= 1;
      lane.runningCost -= cost;
      this.#dispatch();
      this.#forgetIdle(lane);
    }
  }

  #fits(lane: Lane, cost: number): boolean {
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
    if (lane.running === 0 && lane.waiting.size === 0) this.#lanes.delete(lane.name);
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
