import { limits } from '@parley/protocol';
import type { Input, SyncResult } from '@parley/protocol';
import { invalid } from '../../platform/api-errors.ts';
import { createBatcher, readPace } from '../../platform/flow/batcher.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { actingUser } from '../callers.ts';
import type { Context, Services } from '../context.ts';
import { ask, knownMarks, readClock } from './sql.ts';
import type { Cursor, Question, SyncClock } from './sql.ts';

const dayMs = 86_400_000;
const cursorForm = /^s1\.([0-9a-z]{1,11})$|^s2\.([0-9a-z]{1,11})\.([0-9a-z]{1,11})\.([0-9a-f]{16})$/;

const encode = ({ settled, xid, mark }: SyncClock): string =>
  `s2.${settled.toString(36)}.${xid.toString(36)}.${mark}`;

function decode(cursor: string): Cursor {
  const match = cursorForm.exec(cursor);
  if (!match) throw invalid('cursor', 'The cursor is not one of sync.');
  const [, old, since, xid, mark] = match;
  if (old !== undefined) return { since: Number.parseInt(old, 36), seen: null };
  return {
    since: Number.parseInt(since!, 36),
    seen: { xid: Number.parseInt(xid!, 36), mark: mark! },
  };
}

/** What changed for a user since 5 s before the cursor: repeats are normal, misses are not (events#sync). */
export async function sync(ctx: Context, input: Input<'sync'>): Promise<SyncResult> {
  return ctx.services.syncer(ctx.env.no, actingUser(ctx).no, input.cursor);
}

/** Syncs that come together, as after a restart, are answered together. */
export function createSyncer(db: Queryable): Services['syncer'] {
  const { add: run } = createBatcher<Question, SyncResult>({
    // Few: one user may have thousands of conversations.
    maxBatch: 25,
    maxWaiting: 50_000,
    pace: readPace(),
    run: (questions) => syncUsers(db, questions),
  });
  return async (env, user, cursor) => run({ env, user, cursor: cursor === null ? null : decode(cursor) });
}

async function syncUsers(db: Queryable, questions: readonly Question[]): Promise<SyncResult[]> {
  const clock = await readClock(db);
  const known = await knownMarks(db, questions);
  const goesOn = ({ since, seen }: Cursor): boolean =>
    clock.now - since <= limits.syncCursorDays * dayMs &&
    since <= clock.now + limits.syncOverlapMs &&
    (seen === null || (seen.xid <= clock.xid && known.has(seen.mark)));
  const later = questions.filter(({ cursor }) => cursor !== null && goesOn(cursor));
  const whole = questions.filter((q) => !later.includes(q));
  const [changes, gone, everything] = await Promise.all(
    (['changed', 'removed', 'everything'] as const).map((what) =>
      ask(db, what, what === 'everything' ? whole : later, clock.now),
    ),
  );
  const cursor = encode(clock);
  const results = new Map<Question, SyncResult>();
  for (const [i, q] of later.entries()) {
    const removed = gone![i]!.map((r) => r.id);
    results.set(q, { conversations: changes![i]!, removed, cursor, fullReload: false });
  }
  for (const [i, q] of whole.entries())
    results.set(q, { conversations: everything![i]!, removed: [], cursor, fullReload: q.cursor !== null });
  return questions.map((q) => results.get(q)!);
}
