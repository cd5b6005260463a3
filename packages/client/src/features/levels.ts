import { Timer } from '../clock.ts';
import type { Clock } from '../clock.ts';

/** The longest time that timers can wait. */
const maxMs = 2 ** 31 - 1;
/** The server's clock may be behind. */
const leastMs = 1_000;

/** Calls `ended` at the first of the times that it is told, in milliseconds; those who then wait tell theirs again. */
export function watchLevels(clock: Clock, ended: () => void): (at: number) => void {
  const timer = new Timer(clock);
  let first = Infinity;
  return (at) => {
    if (at >= first) return;
    first = at;
    timer.set(Math.min(Math.max(leastMs, at - clock.now()), maxMs), () => {
      first = Infinity;
      ended();
    });
  };
}
