/**
 * Runs one job at a time. Of the inputs that arrive meanwhile only the newest is run next; callers of the others get
 * its result. So a caller that asks in a loop never has more than one job running and one waiting.
 */
export class LatestOnly<I, O> {
  readonly #job: (input: I) => Promise<O>;
  #running: Promise<unknown> | null = null;
  #next: { input: I; result: Promise<O> } | null = null;

  constructor(job: (input: I) => Promise<O>) {
    this.#job = job;
  }

  run(input: I): Promise<O> {
    if (!this.#running) return this.#begin(input);
    if (this.#next) {
      this.#next.input = input;
      return this.#next.result;
    }
    const result: Promise<O> = this.#running.then(() => this.#begin(this.#next!.input));
    this.#next = { input, result };
    return result;
  }

  #begin(input: I): Promise<O> {
    this.#next = null;
    const result = this.#job(input);
    this.#running = result
      .catch(() => undefined)
      .then(() => {
        if (!this.#next) this.#running = null;
      });
    return result;
  }
}
