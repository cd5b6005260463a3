import { ApiError, eventNames, limits } from '@parley/protocol';
import type { EventRecord } from '@parley/protocol';
import { findConversation } from '../features/conversations/sql.ts';
import { readEvents } from '../features/events/operations.ts';
import { membershipsOf } from '../features/presence/sql.ts';
import { catalogue } from '../log/catalogue.ts';
import { eventFrame, limitsOf } from '../log/events.ts';
import type { LogEvent } from '../log/events.ts';
import { createBatcher, readPace } from '../platform/flow/batcher.ts';
import type { Clock } from '../platform/clock.ts';
import type { Db } from '../platform/postgres/db.ts';
import type { Membership } from './registry.ts';
import { eventsOfTypes } from '../features/events/sql.ts';

/** Events by which users join and leave: one that is read from the store changes routes like one from the bus. */
const routeEvents = eventNames.filter((name) => catalogue[name].routes);

/** What the hub reads from the store: memberships at login (one query for many logins), and events missed at a join. */
export function routeSources(db: Db, retentionMs: (env: number) => Promise<number>, clock: Clock) {
  const { add: load } = createBatcher<{ env: number; user: number }, Membership[]>({
    maxBatch: 500,
    maxWaiting: 50_000,
    pace: readPace(),
    run: async (items) => {
      const found = items.map((): Membership[] => []);
      for (const { ord, ...membership } of await membershipsOf(db, items)) found[ord - 1]!.push(membership);
      return found;
    },
  });

  return {
    memberships: (env: number, user: number): Promise<Membership[]> => load({ env, user }),
    missed: async (env: number, cid: string, after: number): Promise<LogEvent[] | null> => {
      const conv = await findConversation(db, env, cid, null);
      if (!conv || conv.lastSeq <= after) return [];
      if (conv.lastSeq - after > limits.pageMax) return null;
      try {
        const floor = new Date(clock.now() - (await retentionMs(env))).toISOString();
        const records = await readEvents(db, env, conv, after, conv.lastSeq, floor);
        const moves = new Map(
          (await eventsOfTypes(db, env, conv.no, after, routeEvents)).map(({ seq, type, users }) => [
            seq,
            { [catalogue[type].routes!]: users },
          ]),
        );
        return records.map((record) => ({
          ...fromRecord(env, conv, record),
          ...limitsOf(conv),
          ...moves.get(record.seq),
        }));
      } catch (error) {
        if (error instanceof ApiError && error.code === 'resync_required') return null;
        throw error;
      }
    },
  };
}

function fromRecord(env: number, conv: { no: number; id: string }, record: EventRecord): LogEvent {
  const { seq, type, createdAt: _, ...d } = record;
  return { env, conv: conv.no, cid: conv.id, seq, e: type, frame: eventFrame(conv.id, seq, type, d) };
}
