import { ApiError, limits } from '@parley/protocol';
import type { Input, SyncResult } from '@parley/protocol';
import { createBatcher, readPace } from '../../platform/batch.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { Context, Services } from '../context.ts';
import { unreadCount } from '../conversations/sql.ts';
import { conversationOf, memberOf, membershipsOf } from '../lookups.ts';

const dayMs = 86_400_000;
const cursorForm = /^s1\.([0-9a-z]{1,11})$/;

/** The cursor is the database's clock, in milliseconds: several nodes agree on it. */
const encode = (ms: number): string => `s1.${ms.toString(36)}`;
function decode(cursor: string): number {
  const match = cursorForm.exec(cursor);
  if (!match)
    throw new ApiError('invalid_request', { param: 'cursor', message: 'The cursor is not one of sync.' });
  return Number.parseInt(match[1]!, 36);
}

/** What changed for a user since the cursor, less 5 s: repeats are normal, misses are not (SPEC 4, Sync). */
export async function sync(ctx: Context, input: Input<'sync'>): Promise<SyncResult> {
  if (ctx.caller.kind !== 'client') throw new ApiError('forbidden');
  return ctx.services.syncer(ctx.env.no, ctx.caller.user.no, input.cursor);
}

/** Syncs that come together, as after a restart, are answered together. */
export function createSyncer(db: Queryable): Services['syncer'] {
  const run = createBatcher<Question, SyncResult>({
    // Few: one user may have thousands of conversations.
    maxBatch: 25,
    maxWaiting: 50_000,
    pace: readPace(),
    run: (questions) => syncUsers(db, questions),
  });
  return async (env, user, cursor) => run({ env, user, since: sinceOf(cursor) });
}

interface Question {
  env: number;
  user: number;
  /** The cursor's time; null: everything is wanted. */
  since: number | null;
}

const sinceOf = (cursor: string | null): number | null => (cursor === null ? null : decode(cursor));

async function syncUsers(db: Queryable, questions: readonly Question[]): Promise<SyncResult[]> {
  const results = new Map<Question, SyncResult>();
  const later = questions.filter((q) => q.since !== null);
  if (later.length > 0) {
    const [changes, gone] = await Promise.all([ask(db, changedSql, later), ask(db, removedSql, later)]);
    changes.forEach(({ now, rows }, i) => {
      const { since } = later[i]!;
      if (now - since! > limits.syncCursorDays * dayMs) return;
      const removed = gone[i]!.rows.map((r) => r.id);
      // The two were not read at one moment: the next sync goes on from the earlier.
      const cursor = encode(Math.min(now, gone[i]!.now));
      results.set(later[i]!, { conversations: rows, removed, cursor, fullReload: false });
    });
  }
  const whole = questions.filter((q) => !results.has(q));
  if (whole.length > 0)
    (await ask(db, everythingSql, whole)).forEach(({ now, rows }, i) => {
      const fullReload = whole[i]!.since !== null;
      results.set(whole[i]!, { conversations: rows, removed: [], cursor: encode(now), fullReload });
    });
  return questions.map((q) => results.get(q)!);
}

type Item = SyncResult['conversations'][number];
interface Answer<T> {
  /** The database's clock, no later than what was read. */
  now: number;
  rows: T[];
}

/** One statement for all questions: its rows lead with the question's place and the time; one without an id stands for nothing found. */
async function ask(db: Queryable, sql: string, questions: readonly Question[]): Promise<Answer<Item>[]> {
  const rows = await db.query<{ ord: number; now: number } & Item>(sql, [
    questions.map((q) => q.env),
    questions.map((q) => q.user),
    questions.map((q) => q.since),
  ]);
  const answers = questions.map((): Answer<Item> => ({ now: 0, rows: [] }));
  for (const { ord, now, ...item } of rows) {
    const answer = answers[ord - 1]!;
    answer.now = now;
    if (item.id !== null) answer.rows.push(item);
  }
  return answers;
}

/** `now()` is the beginning of the transaction, before it sees anything. */
const select = (columns: string, from: string, order: string): string =>
  `SELECT w.ord, (extract(epoch FROM now()) * 1000)::bigint AS now, ${columns}
   FROM unnest($1::int[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS q(env, usr, since, ord)
   CROSS JOIN LATERAL (SELECT q.env, q.usr, q.ord, to_timestamp((least(q.since, extract(epoch FROM now()) * 1000) - ${limits.syncOverlapMs}) / 1000.0) AS since) w
   LEFT JOIN LATERAL (${from}) x ON true ORDER BY w.ord${order}`;

const item = `c.id, c.last_seq AS "lastSeq", ${unreadCount('c', 'm')} AS "unreadCount", c.last_activity_at AS at`;
const columns = 'x.id, x."lastSeq", x."unreadCount"';

const conversation = conversationOf('m.env', 'm.conv');

const everythingSql = select(
  columns,
  `SELECT ${item} FROM ${membershipsOf('w.env', 'w.usr')} m, ${conversation} c WHERE c.deleted_at IS NULL`,
  ', x.at DESC',
);

/** Found by activity step, which may lag the exact time by one. */
const changedSql = select(
  columns,
  `SELECT ${item} FROM (
     SELECT conv FROM ${membershipsOf('w.env', 'w.usr', 'act >= activity_step(w.since) - 1')} x
     UNION SELECT conv FROM ${membershipsOf('w.env', 'w.usr', 'self_act >= activity_step(w.since) - 1')} y
   ) f, ${memberOf('w.env', 'f.conv', 'w.usr')} m, ${conversation} c
   WHERE c.deleted_at IS NULL AND (c.last_activity_at > w.since OR m.self_at > w.since)`,
  ', x.at DESC',
);

const removedSql = select(
  'x.id',
  `SELECT c.id FROM LATERAL (
     SELECT * FROM departures WHERE usr = w.usr AND env + 0 = w.env AND at > w.since OFFSET 0
   ) d, ${conversationOf('d.env', 'd.conv')} c`,
  '',
);
