import type { Clock } from '../clock.ts';
import { Timer } from '../clock.ts';

export const livenessMs = 60_000;

/**
 * SPEC 4, socket behaviour rule 1: any received frame counts; 60 s without one and the socket is dead.
 * States: off | watching. `frame()` only notes the time; the timer looks again when it fires.
 */
export class Liveness {
  #clock: Clock;
  #timer: Timer;
  #dead: () => void;
  #last = 0;
  constructor(clock: Clock, dead: () => void) {
    this.#clock = clock;
    this.#timer = new Timer(clock);
    this.#dead = dead;
  }
  start(): void {
    this.frame();
    this.#arm();
  }
  frame(): void {
    this.#last = this.#clock.now();
  }
  stop(): void {
    this.#timer.clear();
  }
  #arm(): void {
    const left = this.#last + livenessMs - this.#clock.now();
    if (left <= 0) this.#dead();
    else this.#timer.set(left, () => this.#arm());
  }
}
