/**
 * Places for calls to servers of others, which may hang. How many calls run at once is bounded in all and per lane (one
 * per tenant); so is how many of a lane wait. If more lanes want places than there are for all of them, each has an even
 * share: a lane above its share begins nothing, and a free place goes to the waiting lane with the fewest calls.
 */

export interface PlacesOptions {
  /** How many calls run at once. */
  inAll: number;
  ofOne: number;
  /** How many of one lane may wait. */
  waiting: number;
}

interface Lane {
  running: number;
  readonly waiting: Set<() => void>;
}

export class Places {
  readonly #options: PlacesOptions;
  /** Lanes with calls that run or wait; the one that was served last stands last. */
  readonly #lanes = new Map<number, Lane>();
  #running = 0;

  constructor(options: PlacesOptions) {
    this.#options = options;
  }

  get running(): number {
    return this.#running;
  }

  /**
   * Calls `begin` as soon as there is a place, which may be now. Returns the function that gives the place back, or
   * leaves the queue; null if too many wait already.
   */
  enter(name: number, begin: () => void): (() => void) | null {
    let lane = this.#lanes.get(name);
    if (!lane) this.#lanes.set(name, (lane = { running: 0, waiting: new Set() }));
    if (lane.waiting.size === 0 && this.#fits(lane)) {
      this.#start(name, lane);
      begin();
      return this.#once(() => this.#leave(name, lane));
    }
    if (lane.waiting.size >= this.#options.waiting) return null;
    // Its own function, because two entries of a set must differ.
    const entry = (): void => begin();
    lane.waiting.add(entry);
    return this.#once(() => {
      if (lane.waiting.delete(entry)) this.#forgetIdle(name, lane);
      else this.#leave(name, lane);
    });
  }

  #once(run: () => void): () => void {
    let done = false;
    return () => {
      if (done) return;
      done = true;
      run();
    };
  }

  get #share(): number {
    const { inAll, ofOne } = this.#options;
    return Math.min(ofOne, Math.max(1, Math.floor(inAll / this.#lanes.size)));
  }

  #fits(lane: Lane): boolean {
    return this.#running < this.#options.inAll && lane.running < this.#share;
  }

  #start(name: number, lane: Lane): void {
    lane.running += 1;
    this.#running += 1;
    this.#lanes.delete(name);
    this.#lanes.set(name, lane);
  }

  #leave(name: number, lane: Lane): void {
    lane.running -= 1;
    this.#running -= 1;
    this.#forgetIdle(name, lane);
    this.#dispatch();
  }

  #forgetIdle(name: number, lane: Lane): void {
    if (lane.running === 0 && lane.waiting.size === 0) this.#lanes.delete(name);
  }

  #dispatch(): void {
    for (let next = this.#next(); next; next = this.#next()) {
      const [name, lane] = next;
      const [begin] = lane.waiting;
      lane.waiting.delete(begin!);
      this.#start(name, lane);
      begin!();
    }
  }

  #next(): [number, Lane] | undefined {
    let fewest: [number, Lane] | undefined;
    if (this.#running >= this.#options.inAll) return undefined;
    for (const entry of this.#lanes) {
      const [, lane] = entry;
      if (
        lane.waiting.size > 0 &&
        lane.running < this.#share &&
        lane.running < (fewest?.[1].running ?? Infinity)
      )
        fewest = entry;
    }
    return fewest;
  }
}
