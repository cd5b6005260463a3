/**
 * Queues: a caller that enters a line leaves it after all that entered before, however long each takes
 * meanwhile. Different lines know nothing of each other.
 */
export class Lines {
  readonly #last = new Map<string, Promise<void>>();

  /** Enters the line. `turn` resolves when all before have left; every caller must leave. */
  enter(name: string): { turn: Promise<void> | undefined; leave: () => void } {
    const turn = this.#last.get(name);
    const { promise, resolve } = Promise.withResolvers<void>();
    const left = turn ? turn.then(() => promise) : promise;
    this.#last.set(name, left);
    return {
      turn,
      leave: () => {
        resolve();
        void left.then(() => {
          if (this.#last.get(name) === left) this.#last.delete(name);
        });
      },
    };
  }

  /** How many lines somebody stands in. */
  get size(): number {
    return this.#last.size;
  }
}
