import { ApiError, limits } from '@parley/protocol';
import type { Input, SyncResult } from '@parley/protocol';
import { createBatcher, readPace } from '../../platform/flow/batcher.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { actingUser } from '../callers.ts';
import type { Context, Services } from '../context.ts';
import { unreadCount } from '../conversations/sql.ts';
import { conversationOf, memberOf, membershipsOf } from '../lookups.ts';

const dayMs = 86_400_000;
const cursorForm = /^s1\.([0-9a-z]{1,11})$|^s2\.([0-9a-z]{1,11})\.([0-9a-z]{1,11})\.([0-9a-f]{16})$/;

interface Cursor {
  /** Milliseconds by the database's own clock, which all nodes share and which never goes back. */
  since: number;
  /** A transaction number and a mark that the database had at that moment; null in cursors of earlier versions. */
  seen: { xid: number; mark: string } | null;
}

const encode = ({ settled, xid, mark }: SyncClock): string =>
  `s2.${settled.toString(36)}.${xid.toString(36)}.${mark}`;

function decode(cursor: string): Cursor {
  const match = cursorForm.exec(cursor);
  if (!match)
    throw new ApiError('invalid_request', { param: 'cursor', message: 'The cursor is not one of sync.' });
  const [, old, since, xid, mark] = match;
  if (old !== undefined) return { since: Number.parseInt(old, 36), seen: null };
  return {
    since: Number.parseInt(since!, 36),
    seen: { xid: Number.parseInt(xid!, 36), mark: mark! },
  };
}

interface SyncClock {
  now: number;
  /** Milliseconds; no transaction that is still running can write an earlier time. */
  settled: number;
  xid: number;
  mark: string;
}

/** Must be called before the rows that the next cursor stands for are read. */
async function readClock(db: Queryable): Promise<SyncClock> {
  const [clock] = await db.query<SyncClock>(
    'SELECT now_ms AS now, settled_ms AS settled, next_xid AS xid, mark FROM sync_clock()',
  );
  return clock!;
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

interface Question {
  env: number;
  user: number;
  /** null if the user asks for everything. */
  cursor: Cursor | null;
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
    ([changedSql, removedSql, everythingSql] as const).map((sql, i) =>
      ask(db, sql, i < 2 ? later : whole, clock.now),
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

async function knownMarks(db: Queryable, questions: readonly Question[]): Promise<Set<string>> {
  const marks = new Set(questions.flatMap(({ cursor }) => cursor?.seen?.mark ?? []));
  if (marks.size === 0) return marks;
  const rows = await db.query<{ mark: string }>(
    `SELECT x.mark FROM unnest($1::text[]) w(mark)
     CROSS JOIN LATERAL (SELECT mark FROM store_marks WHERE mark = w.mark LIMIT 1) x`,
    [[...marks]],
  );
  return new Set(rows.map(({ mark }) => mark));
}

type Item = SyncResult['conversations'][number];

/** Runs one statement for all questions; each row begins with the position of its question. */
async function ask(
  db: Queryable,
  sql: string,
  questions: readonly Question[],
  now: number,
): Promise<Item[][]> {
  const answers = questions.map((): Item[] => []);
  if (questions.length === 0) return answers;
  const rows = await db.query<{ ord: number } & Item>(sql, [
    questions.map((q) => q.env),
    questions.map((q) => q.user),
    questions.map((q) => Math.min(q.cursor?.since ?? 0, now) - limits.syncOverlapMs),
  ]);
  for (const { ord, ...item } of rows) answers[ord - 1]!.push(item);
  return answers;
}

const select = (columns: string, from: string, order: string): string =>
  `SELECT w.ord, ${columns}
   FROM unnest($1::int[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS q(env, usr, ms, ord)
   CROSS JOIN LATERAL (SELECT q.env, q.usr, q.ord, to_timestamp(q.ms / 1000.0) AS since) w
   CROSS JOIN LATERAL (${from}) x ORDER BY w.ord${order}`;

const item = `c.id, c.last_seq AS "lastSeq", ${unreadCount('c', 'm')} AS "unreadCount", c.last_activity_at AS at`;
const columns = 'x.id, x."lastSeq", x."unreadCount"';

const conversation = conversationOf('m.env', 'm.conv');

const everythingSql = select(
  columns,
  `SELECT ${item} FROM ${membershipsOf('w.env', 'w.usr')} m, ${conversation} c WHERE c.deleted_at IS NULL`,
  ', x.at DESC',
);

/** Conversations are found by activity step, which may be one behind the exact time. */
const changedSql = select(
  columns,
  `SELECT ${item} FROM (
     SELECT conv FROM ${membershipsOf('w.env', 'w.usr', 'last_activity_step >= activity_step(w.since) - 1')} x
     UNION SELECT conv FROM ${membershipsOf('w.env', 'w.usr', 'own_activity_step >= activity_step(w.since) - 1')} y
   ) f, ${memberOf('w.env', 'f.conv', 'w.usr')} m, ${conversation} c
   WHERE c.deleted_at IS NULL AND (c.last_activity_at > w.since OR m.own_activity_at > w.since)`,
  ', x.at DESC',
);

const removedSql = select(
  'x.id',
  `SELECT c.id FROM LATERAL (
     SELECT * FROM departures WHERE usr = w.usr AND env + 0 = w.env AND at > w.since OFFSET 0
   ) d, ${conversationOf('d.env', 'd.conv')} c`,
  '',
);
