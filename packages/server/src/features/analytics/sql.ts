import type { AnalyticsReport } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import { arraysOf, column, oneValue } from '../../platform/postgres/rows.ts';
import { conversationOf } from '../sql/lookups.ts';
import { stepNumbers } from './range.ts';
import type { Piece, Range } from './range.ts';

/** How figures are read. None of these statements reads a message. */

/** Counters by name, as they are stored. */
export type Counts = Record<string, number>;

const edges = ({ from, to }: Range): [string, string] => [
  new Date(from).toISOString(),
  new Date(to).toISOString(),
];

export async function stepCounts(
  db: Queryable,
  env: number,
  range: Range,
): Promise<{ at: string; counts: Counts }[]> {
  return db.query(
    'SELECT at, counts FROM counters WHERE env = $1 AND step = $2 AND at >= $3 AND at < $4 ORDER BY at',
    [env, stepNumbers[range.granularity], ...edges(range)],
  );
}

const pieceValues = (pieces: Piece[]): [number[], string[]] => [
  pieces.map((p) => p.step),
  pieces.map((p) => p.at),
];

/** The number of distinct users over all pieces. */
export const activeUsers = (db: Queryable, env: number, pieces: Piece[]): Promise<number> =>
  oneValue(
    db,
    `SELECT coalesce(sum(bit_count(x.bits)), 0)::bigint AS n FROM (
       SELECT bit_or(a.bits) AS bits FROM unnest($2::int[], $3::timestamptz[]) AS p(step, at)
         JOIN active_users a ON a.env = $1 AND a.step = p.step AND a.at = p.at GROUP BY a.chunk
     ) x`,
    [env, ...pieceValues(pieces)],
  );

/** Monthly active users of the months since that of `from`, by the beginning of the month. */
export async function monthlyActiveUsers(
  db: Queryable,
  env: number,
  from: number,
): Promise<Map<string, number>> {
  const rows = await db.query<{ at: string; n: number }>(
    `SELECT at, n FROM active_months WHERE env = $1 AND at >= date_trunc('month', $2::timestamptz, 'UTC')`,
    [env, new Date(from).toISOString()],
  );
  return new Map(rows.map(({ at, n }) => [at, n]));
}

/** How far counting what existed before analytics has come; null if it is finished, or there was nothing. */
export async function readFill(db: Queryable): Promise<{ done: number; total: number } | null> {
  const [row] = await db.query<{ done: number; total: number }>(
    'SELECT done, total FROM analytics_fill WHERE finished_at IS NULL',
  );
  return row ?? null;
}

/** Messages by weekday (Monday first) and hour. */
export async function heatmap(db: Queryable, env: number, range: Range): Promise<number[][]> {
  const rows = await db.query<{ hour: number; n: number }>(
    `SELECT extract(epoch FROM at)::bigint / 3600 % 168 AS hour, sum(messages)::bigint AS n
     FROM message_hours WHERE env = $1 AND at >= $2 AND at < $3 GROUP BY 1`,
    [env, ...edges(range)],
  );
  const map = Array.from({ length: 7 }, () => new Array<number>(24).fill(0));
  // Hours are counted from 1 January 1970, which was a Thursday.
  for (const { hour, n } of rows) map[(Math.floor(hour / 24) + 3) % 7]![hour % 24] = n;
  return map;
}

const listed = 10;
/** Of the entries that are among the largest of some piece, this many are added up exactly. */
const candidates = 25;
const perPiece = 50;

/** Merges the lists of largest entries of all pieces. LIMIT 1 makes each one index look-up. */
const best = (kind: 'conversation' | 'sender', table: string, column: string, more = '') => `
  WITH piece AS MATERIALIZED (SELECT * FROM unnest($2::int[], $3::timestamptz[]) AS p(step, at)),
  candidate AS MATERIALIZED (
    SELECT x.no FROM piece p
      CROSS JOIN LATERAL (SELECT * FROM activity_tops t WHERE t.env = $1 AND t.step = p.step AND t.at = p.at AND t.kind = '${kind}' LIMIT 1) t
      CROSS JOIN LATERAL unnest(t.nos[:${perPiece}], t.messages[:${perPiece}]) AS x(no, messages)
    GROUP BY 1 ORDER BY sum(x.messages) DESC, 1 LIMIT ${candidates}
  ), best AS (
    SELECT c.no, sum(a.messages)::bigint AS messages${more} FROM candidate c CROSS JOIN piece p CROSS JOIN LATERAL (
      SELECT * FROM ${table} a WHERE a.env = $1 AND a.step = p.step AND a.at = p.at AND a.${column} = c.no LIMIT 1
    ) a GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ${listed}
  )`;

export const topConversations = (
  db: Queryable,
  env: number,
  pieces: Piece[],
): Promise<AnalyticsReport['topConversations']> =>
  db.query(
    `${best('conversation', 'conversation_activity', 'conv', ', max(a.last_at) AS last_at')}
     SELECT c.id, c.name, c.type, b.messages, b.last_at AS "lastAt", (
         SELECT count(DISTINCT s) FROM piece p CROSS JOIN LATERAL (
           SELECT a.senders FROM conversation_activity a WHERE a.env = $1 AND a.step = p.step AND a.at = p.at AND a.conv = b.no LIMIT 1
         ) a CROSS JOIN LATERAL unnest(a.senders) s
       ) AS senders
     FROM best b CROSS JOIN ${conversationOf('$1', 'b.no')} c ORDER BY b.messages DESC, b.no`,
    [env, ...pieceValues(pieces)],
  );

export const topSenders = (
  db: Queryable,
  env: number,
  pieces: Piece[],
): Promise<AnalyticsReport['topSenders']> =>
  db.query(
    `${best('sender', 'sender_activity', 'usr')}
     SELECT u.id AS "userId", u.name, b.messages FROM best b JOIN users u ON u.no = b.no AND u.env = $1 ORDER BY b.messages DESC, b.no`,
    [env, ...pieceValues(pieces)],
  );

/** Adds up what was noted, at most so many notes. Returns how many there were. */
export const countNotes = (db: Queryable, most: number): Promise<number> =>
  oneValue(db, 'SELECT count_notes($1) AS n', [most]);

/** Counts a portion of what existed before analytics. Returns whether there is more. */
export const fillAnalytics = (db: Queryable, most: number): Promise<boolean> =>
  oneValue(db, 'SELECT fill_analytics($1) AS more', [most]);

/** Adds counts to the hour and the day of now. */
export const addCounts = (db: Queryable, added: readonly { env: number; counts: object }[]) =>
  db.query(
    `SELECT add_counts($1::int[], array_fill(now(), ARRAY[cardinality($1::int[])]), $2::jsonb[], NULL)`,
    [added.map(({ env }) => env), added.map(({ counts }) => JSON.stringify(counts))],
  );

/** A user who is active, and the ceiling of the month; null if there is none to check. */
export interface Activity {
  env: number;
  user: number;
  limit: number | null;
}

/** Records that users are connected. Returns whom the ceiling admits. */
export const noteConnected = (db: Queryable, items: readonly Activity[]): Promise<boolean[]> =>
  oneValue(db, 'SELECT note_connected($1, $2, $3) AS admitted', arraysOf(items, 'env', 'user', 'limit'));

export const monthVerdicts = (db: Queryable, items: readonly Activity[]): Promise<string[]> =>
  column(
    db,
    `SELECT month_verdict(u.env, u.usr, u.most) AS verdict
  FROM unnest($1::int[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS u(env, usr, most, ord) ORDER BY u.ord`,
    arraysOf(items, 'env', 'user', 'limit'),
  );

/** In the order of environments, so that two such statements cannot deadlock. */
export const countInMonth = (db: Queryable, items: readonly Activity[]) =>
  db.query(
    `SELECT count_in_month(u.env, u.usr)
  FROM (SELECT * FROM unnest($1::int[], $2::bigint[]) AS u(env, usr) ORDER BY 1, 2) u`,
    arraysOf(items, 'env', 'user'),
  );
