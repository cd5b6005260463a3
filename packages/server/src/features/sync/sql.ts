import { limits } from '@parley/protocol';
import type { SyncResult } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import { arraysOf, oneRow } from '../../platform/postgres/rows.ts';
import { mentionUnreadCount, unreadCount } from '../../log/unread/sql/counters.ts';
import { conversationOf, memberOf, membershipsOf } from '../sql/lookups.ts';

export interface Cursor {
  /** Milliseconds by the database's own clock, which all nodes share and which never goes back. */
  since: number;
  /** A transaction number and a mark that the database had at that moment; null in cursors of earlier versions. */
  seen: { xid: number; mark: string } | null;
}

export interface SyncClock {
  now: number;
  /** Milliseconds; no transaction that is still running can write an earlier time. */
  settled: number;
  xid: number;
  mark: string;
}

/** Must be called before the rows that the next cursor stands for are read. */
export const readClock = (db: Queryable): Promise<SyncClock> =>
  oneRow(db, 'SELECT now_ms AS now, settled_ms AS settled, next_xid AS xid, mark FROM sync_clock()');

export interface Question {
  env: number;
  user: number;
  /** null if the user asks for everything. */
  cursor: Cursor | null;
}

export async function knownMarks(db: Queryable, questions: readonly Question[]): Promise<Set<string>> {
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

const select = (columns: string, from: string, order: string): string =>
  `SELECT w.ord, ${columns}
   FROM unnest($1::int[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS q(env, usr, ms, ord)
   CROSS JOIN LATERAL (SELECT q.env, q.usr, q.ord, to_timestamp(q.ms / 1000.0) AS since) w
   CROSS JOIN LATERAL (${from}) x ORDER BY w.ord${order}`;

const item = `c.id, c.last_seq AS "lastSeq", ${unreadCount('c', 'm')} AS "unreadCount",
  ${mentionUnreadCount('c', 'm')} AS "mentionUnreadCount", c.last_activity_at AS at`;
const columns = 'x.id, x."lastSeq", x."unreadCount", x."mentionUnreadCount"';

const conversation = conversationOf('m.env', 'm.conv');

const everything = select(
  columns,
  `SELECT ${item} FROM ${membershipsOf('w.env', 'w.usr')} m, ${conversation} c WHERE c.deleted_at IS NULL`,
  ', x.at DESC',
);

/** Conversations are found by activity step, which may be one behind the exact time. */
const changed = select(
  columns,
  `SELECT ${item} FROM (
     SELECT conv FROM ${membershipsOf('w.env', 'w.usr', 'last_activity_step >= activity_step(w.since) - 1')} x
     UNION SELECT conv FROM ${membershipsOf('w.env', 'w.usr', 'own_activity_step >= activity_step(w.since) - 1')} y
   ) f, ${memberOf('w.env', 'f.conv', 'w.usr')} m, ${conversation} c
   WHERE c.deleted_at IS NULL AND (c.last_activity_at > w.since OR m.own_activity_at > w.since)`,
  ', x.at DESC',
);

const removed = select(
  'x.id',
  `SELECT c.id FROM LATERAL (
     SELECT * FROM departures WHERE usr = w.usr AND env + 0 = w.env AND at > w.since OFFSET 0
   ) d, ${conversationOf('d.env', 'd.conv')} c`,
  '',
);

const statements = { changed, removed, everything };

/** Runs one statement for all questions; each row begins with the position of its question. */
export async function ask(
  db: Queryable,
  what: keyof typeof statements,
  questions: readonly Question[],
  now: number,
): Promise<Item[][]> {
  const answers = questions.map((): Item[] => []);
  if (questions.length === 0) return answers;
  const rows = await db.query<{ ord: number } & Item>(statements[what], [
    ...arraysOf(questions, 'env', 'user'),
    questions.map((q) => Math.min(q.cursor?.since ?? 0, now) - limits.syncOverlapMs),
  ]);
  for (const { ord, mentionUnreadCount, ...item } of rows)
    answers[ord - 1]!.push(mentionUnreadCount ? { ...item, mentionUnreadCount } : item);
  return answers;
}
