import { Timer } from '../clock.ts';
import type { Clock } from '../clock.ts';
import type { ConversationList } from '../state/conversation-list.ts';

/** The longest time that timers can wait. */
const maxMs = 2 ** 31 - 1;
/** The server's clock may be behind. */
const leastMs = 1_000;

/** Levels that end by themselves: the server is asked which one holds then. The returned function looks for the next end. */
export function watchLevels(options: {
  clock: Clock;
  list: ConversationList;
  /** How much the server's clock is ahead. */
  offset(): number;
  ended(): void;
}): () => void {
  const { clock, list, offset, ended } = options;
  const timer = new Timer(clock);
  function look(): void {
    const now = clock.now() + offset();
    let next = Infinity;
    let over = false;
    for (const { id, mutedUntil } of list.store.get().items) {
      if (mutedUntil === undefined) continue;
      const end = Date.parse(mutedUntil);
      if (end > now) next = Math.min(next, end);
      else {
        list.markStale(id);
        over = true;
      }
    }
    if (over) ended();
    if (over) next = Math.min(next, now + leastMs);
    if (next < Infinity) timer.set(Math.min(Math.max(leastMs, next - now), maxMs), look);
  }
  return look;
}
