import { Timer } from '../clock.ts';
import type { Clock } from '../clock.ts';
import type { ConversationList } from '../state/conversation-list.ts';

/** The server's clock may be behind. */
const leastMs = 1_000;

/** Levels that end by themselves: the server is asked which one holds then. The returned function looks for the next end. */
export function watchLevels(options: {
  clock: Clock;
  list: ConversationList;
  /** There is a connection: without one nothing is waited for. */
  isOn(): boolean;
  /** How much the server's clock is ahead. */
  offset(): number;
  ended(): void;
}): () => void {
  const { clock, list, isOn, offset, ended } = options;
  const timer = new Timer(clock);
  function look(): void {
    timer.clear();
    if (!isOn()) return;
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
    if (next < Infinity) timer.set(Math.max(leastMs, next - now), look);
  }
  return look;
}
