/**
 * A caller who is refused and asks again at once would keep us busy with refusing. A caller who is refused more than
 * 50 times in a second gets the answer a second later. When 100 of its answers wait like this, the connection of the
 * next one is cut.
 */

export interface BrakeBounds {
  /** How many refusals of one caller are answered at once, per second. */
  free: number;
  heldMs: number;
  /** How many refusals wait, of one caller and in all. */
  held: number;
  heldInAll: number;
  /** How many callers are remembered. */
  callers: number;
}

export const brakeBounds: BrakeBounds = {
  free: 50,
  heldMs: 1_000,
  held: 100,
  heldInAll: 5_000,
  callers: 10_000,
};

interface Refusals {
  second: number;
  count: number;
  held: number;
}

export class Brake {
  readonly #bounds: BrakeBounds;
  readonly #now: () => number;
  readonly #callers = new Map<string, Refusals>();
  #held = 0;

  constructor(bounds: BrakeBounds, now: () => number) {
    this.#bounds = bounds;
    this.#now = now;
  }

  /** Resolves when the refusal may be answered; false if it gets no answer. */
  async hold(who: string): Promise<boolean> {
    const { free, held, heldInAll, heldMs } = this.#bounds;
    const refusals = this.#of(who);
    refusals.count += 1;
    if (refusals.count <= free) return true;
    if (refusals.held >= held || this.#held >= heldInAll) return false;
    refusals.held += 1;
    this.#held += 1;
    await new Promise((resolve) => setTimeout(resolve, heldMs));
    refusals.held -= 1;
    this.#held -= 1;
    return true;
  }

  #of(who: string): Refusals {
    const second = Math.floor(this.#now() / 1_000);
    let refusals = this.#callers.get(who);
    if (!refusals) {
      // Forgetting a caller can only allow more.
      if (this.#callers.size >= this.#bounds.callers)
        this.#callers.delete(this.#callers.keys().next().value!);
      this.#callers.set(who, (refusals = { second, count: 0, held: 0 }));
    }
    if (refusals.second !== second) Object.assign(refusals, { second, count: 0 });
    return refusals;
  }
}
