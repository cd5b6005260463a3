import { limits } from '@parley/protocol';
import type { ConversationListItem } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import { decodeCursor, encodeCursor } from '../pages.ts';
import { listItems } from './sql.ts';

/**
 * A user's conversations by last activity, newest first, in pages that neither repeat nor skip while messages
 * arrive: later pages show the order as it stood when the first page was read (`at`).
 *
 * A conversation that moved since is found again at the place it had then. A commit under way while the first page
 * was read may carry a time before `at`; so activity in the last moments before `at` (`overlap`) is only trusted
 * for conversations that the cursor names as returned.
 */

/** Bounds the cursor; past it a conversation written to while being paged could come twice. */
const maxSeen = 600;

/** Conversations found in order: [activity as of the first page, number]. */
type Position = [at: string, no: number];

interface Cursor {
  at: string;
  last: Position;
  /** Returned with an activity inside the overlap. */
  seen: number[];
}

const isPosition = (v: unknown): v is Position =>
  Array.isArray(v) && v.length === 2 && isTime(v[0]) && Number.isSafeInteger(v[1]);
const isTime = (v: unknown): v is string => typeof v === 'string' && !Number.isNaN(Date.parse(v));
const isCursor = (v: unknown): v is Cursor => {
  const c = v as Cursor | null;
  return (
    typeof c === 'object' &&
    c !== null &&
    isTime(c.at) &&
    isPosition(c.last) &&
    Array.isArray(c.seen) &&
    c.seen.every((n) => Number.isSafeInteger(n))
  );
};

interface Row {
  no: number;
  at: string;
}

/** Rows are found by the coarse activity step and sorted by the exact time; a step may lag the time by one. */
const settledSql = `
  WITH mine AS (
    SELECT m.act, c.no, c.last_activity_at AS at
    FROM members m JOIN conversations c ON c.env = m.env AND c.no = m.conv
    WHERE m.env = $1 AND m.usr = $2 AND m.act <= activity_step($4::timestamptz) + 1 AND c.deleted_at IS NULL
      AND c.last_activity_at <= $3::timestamptz AND (c.last_activity_at, c.no) < ($4::timestamptz, $5::bigint)
  ), edge AS (
    SELECT coalesce(min(act), 0) - 1 AS act FROM (SELECT act FROM mine ORDER BY act DESC LIMIT $6) x
  )
  SELECT no, at FROM (
    SELECT c.no, c.last_activity_at AS at
    FROM members m JOIN conversations c ON c.env = m.env AND c.no = m.conv
    WHERE m.env = $1 AND m.usr = $2 AND m.act <= activity_step($4::timestamptz) + 1 AND m.act >= (SELECT act FROM edge)
      AND c.deleted_at IS NULL
      AND c.last_activity_at <= $3::timestamptz AND (c.last_activity_at, c.no) < ($4::timestamptz, $5::bigint)
  ) y ORDER BY at DESC, no DESC LIMIT $6`;

/** Conversations active since just before the first page: where they stood then (`at`), and before the overlap (`before`). */
const recentSql = `
  SELECT c.no, c.last_activity_at AS now,
    CASE WHEN c.last_activity_at <= $3::timestamptz THEN c.last_activity_at
      ELSE activity_as_of($1, c.no, $3::timestamptz) END AS at,
    activity_as_of($1, c.no, $4::timestamptz) AS before
  FROM members m JOIN conversations c ON c.env = m.env AND c.no = m.conv
  WHERE m.env = $1 AND m.usr = $2 AND m.act >= activity_step($4::timestamptz) - 1 AND c.deleted_at IS NULL
    AND c.last_activity_at > $4::timestamptz`;

const below = (a: Row, [at, no]: Position): boolean => a.at < at || (a.at === at && a.no < no);
const newestFirst = (a: Row, b: Row): number => (a.at === b.at ? b.no - a.no : a.at < b.at ? 1 : -1);

export async function listConversations(
  db: Queryable,
  env: number,
  user: number,
  limit: number,
  cursorText: string | undefined,
): Promise<{ data: ConversationListItem[]; nextCursor: string | null }> {
  const cursor = cursorText === undefined ? null : decodeCursor(cursorText, isCursor);
  const at =
    cursor?.at ?? (await db.query<{ at: string }>('SELECT clock_timestamp()::timestamptz(3) AS at'))[0]!.at;
  const last: Position = cursor?.last ?? [new Date(Date.parse(at) + 1).toISOString(), 0];
  const overlapFrom = new Date(Date.parse(at) - limits.syncOverlapMs).toISOString();

  let rows = await db.query<Row>(settledSql, [env, user, at, last[0], last[1], limit + 1]);
  if (cursor) {
    const seen = new Set(cursor.seen);
    const settled = new Set(rows.map((r) => r.no));
    const recent = await db.query<{ no: number; at: string | null; before: string | null }>(recentSql, [
      env,
      user,
      at,
      overlapFrom,
    ]);
    const moved: Row[] = [];
    for (const r of recent) {
      if (seen.has(r.no) || settled.has(r.no)) continue;
      const place = r.at !== null && below({ no: r.no, at: r.at }, last) ? r.at : r.before;
      if (place !== null && below({ no: r.no, at: place }, last)) moved.push({ no: r.no, at: place });
    }
    rows = [...rows, ...moved].sort(newestFirst);
  }
  const page = rows.slice(0, limit);
  const items = await listItems(
    db,
    env,
    user,
    page.map((r) => r.no),
  );
  const data = page.flatMap((r) => items.get(r.no) ?? []);
  if (rows.length <= limit) return { data, nextCursor: null };
  const end = page.at(-1)!;
  const seen = [...(cursor?.seen ?? []), ...page.filter((r) => r.at > overlapFrom).map((r) => r.no)].slice(
    -maxSeen,
  );
  return { data, nextCursor: encodeCursor({ at, last: [end.at, end.no], seen } satisfies Cursor) };
}
