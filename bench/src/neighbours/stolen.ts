/**
 * When the host of a virtual machine gave its processors to others. Nothing runs meanwhile, so what falls into such a time says nothing
 * about the service.
 */

/** Milliseconds of all processors together that may be taken between two looks; a little always is. */
const easyMs = 20;
/** What was held up is still being made up for so many milliseconds later. */
const aftermathMs = 1_000;

export class Stolen {
  readonly #stolenMs: () => number;
  readonly #times: { from: number; to: number }[] = [];
  #last: { at: number; stolen: number };

  /** @param stolenMs how much was taken so far. */
  constructor(stolenMs: () => number, now: number) {
    this.#stolenMs = stolenMs;
    this.#last = { at: now, stolen: stolenMs() };
  }

  /** To be called every half second. */
  look(now: number): void {
    const stolen = this.#stolenMs();
    if (stolen - this.#last.stolen > easyMs) this.#times.push({ from: this.#last.at, to: now + aftermathMs });
    this.#last = { at: now, stolen };
  }

  /** Whether what began then began in such a time. When it ended does not count: what takes long would be left out more often. */
  spoils(began: number): boolean {
    return this.#times.some(({ from, to }) => from <= began && began < to);
  }
}
