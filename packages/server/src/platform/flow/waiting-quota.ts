/** Counts waiting items, in all and per group, so that one group cannot use up the room of all. */
export class Room {
  readonly #inAll: number;
  readonly #ofOne: number;
  readonly #counts = new Map<number, number>();
  #count = 0;

  constructor(limits: { inAll: number; ofOne: number }) {
    this.#inAll = limits.inAll;
    this.#ofOne = limits.ofOne;
  }

  /** Returns false, and counts nothing, if there is no room left. */
  enter(group: number): boolean {
    const count = this.#counts.get(group) ?? 0;
    if (this.#count >= this.#inAll || count >= this.#ofOne) return false;
    this.#counts.set(group, count + 1);
    this.#count++;
    return true;
  }

  leave(group: number): void {
    const count = this.#counts.get(group)!;
    if (count === 1) this.#counts.delete(group);
    else this.#counts.set(group, count - 1);
    this.#count--;
  }

  get count(): number {
    return this.#count;
  }
}
