import { CountsByKey } from './counts-by-key.ts';

/**
 * Counts items that wait, in all and per group (a tenant, a caller), and bounds both, so that one group cannot use up
 * the places of all. At either bound the next item may not wait; its owner refuses it.
 */
export class WaitingQuota<G = number> {
  readonly #inAll: number;
  readonly #ofOne: number;
  readonly #counts = new CountsByKey<G>();
  #count = 0;

  constructor(limits: { inAll: number; ofOne: number }) {
    this.#inAll = limits.inAll;
    this.#ofOne = limits.ofOne;
  }

  /** Returns false, and counts nothing, if no place is left. */
  enter(group: G): boolean {
    if (this.#count >= this.#inAll || this.#counts.of(group) >= this.#ofOne) return false;
    this.#counts.add(group, 1);
    this.#count++;
    return true;
  }

  leave(group: G): void {
    this.#counts.add(group, -1);
    this.#count--;
  }

  get count(): number {
    return this.#count;
  }
}
