import { limits } from '@parley/protocol';
import type { ConversationListItem } from '@parley/protocol';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { conversationOf } from '../../sql/lookups.ts';
import { decodeCursor, encodeCursor, fitting, isTime } from '../../pages.ts';
import { listItems } from '../sql.ts';
import type { LevelTerms } from '../sql.ts';

/**
 * A user's conversations by last activity, newest first, in pages that neither repeat nor skip while messages arrive:
 * later pages show the order as it stood when the first page was read (`at`).
 *
 * A conversation that moved since then is found again at the place it had. A transaction that committed while the
 * first page was read may carry a time before `at`. So activity in the last `limits.syncOverlapMs` before `at` is
 * trusted only for conversations that the cursor names as returned.
 */

/** Milliseconds; more than the time between a writer's reading of the clock and ours for the first page. */
const aheadMs = 60_000;

/**
 * How many numbers a cursor holds at most; beyond it, a conversation that is written to while the list is read may
 * appear twice.
 */
const maxSeen = 600;

/** Where a conversation stands in the order: [its activity as of the first page, its number]. */
type Position = [at: string, no: number];

interface Cursor {
  at: string;
  last: Position;
  /** Numbers of the returned conversations whose activity was inside the overlap. */
  seen: number[];
}

const isPosition = (v: unknown): v is Position =>
  Array.isArray(v) && v.length === 2 && isTime(v[0]) && Number.isSafeInteger(v[1]);
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

const conversation = conversationOf('m.env', 'm.conv');

/** Finds rows by the coarse activity step and sorts them by the exact time; a step may be one behind the time. */
const settledSql = `
  WITH mine AS (
    SELECT m.last_activity_step, c.no, c.last_activity_at AS at FROM members m, ${conversation} c
    WHERE m.env + 0 = $1 AND m.usr = $2 AND m.last_activity_step <= activity_step($4::timestamptz) + 1 AND c.deleted_at IS NULL
      AND c.last_activity_at <= $3::timestamptz AND (c.last_activity_at, c.no) < ($4::timestamptz, $5::bigint)
  ), edge AS (
    SELECT coalesce(min(last_activity_step), 0) - 1 AS step FROM (SELECT last_activity_step FROM mine ORDER BY last_activity_step DESC LIMIT $6) x
  )
  SELECT no, at FROM (
    SELECT c.no, c.last_activity_at AS at FROM members m, ${conversation} c
    WHERE m.env + 0 = $1 AND m.usr = $2 AND m.last_activity_step <= activity_step($4::timestamptz) + 1
      AND m.last_activity_step >= (SELECT step FROM edge) AND c.deleted_at IS NULL
      AND c.last_activity_at <= $3::timestamptz AND (c.last_activity_at, c.no) < ($4::timestamptz, $5::bigint)
  ) y ORDER BY at DESC, no DESC LIMIT $6`;

/**
 * Conversations active since the beginning of the overlap: their activity as of the first page (`at`; null if they
 * were created later) and as of the beginning of the overlap (`before`; that beginning itself for younger ones).
 */
const recentSql = `
  SELECT c.no,
    CASE WHEN c.last_activity_at <= $3::timestamptz THEN c.last_activity_at
      WHEN c.created_at <= $3::timestamptz THEN coalesce(activity_as_of($1, c.no, $3::timestamptz), c.created_at)
    END AS at,
    coalesce(activity_as_of($1, c.no, $4::timestamptz), least(c.created_at, $4::timestamptz)) AS before
  FROM members m, ${conversation} c
  WHERE m.env + 0 = $1 AND m.usr = $2 AND m.last_activity_step >= activity_step($4::timestamptz) - 1 AND c.deleted_at IS NULL
    AND c.last_activity_at > $4::timestamptz`;

const moved = (time: string, ms: number): string => new Date(Date.parse(time) + ms).toISOString();
const below = (a: Row, [at, no]: Position): boolean => a.at < at || (a.at === at && a.no < no);
const newestFirst = (a: Row, b: Row): number => (a.at === b.at ? b.no - a.no : a.at < b.at ? 1 : -1);

export async function listConversations(
  db: Queryable,
  env: number,
  user: number,
  limit: number,
  cursorText: string | undefined,
  levels: LevelTerms,
): Promise<{ data: ConversationListItem[]; nextCursor: string | null }> {
  const cursor = cursorText === undefined ? null : decodeCursor(cursorText, isCursor);
  const now =
    cursor?.at ?? (await db.query<{ at: string }>('SELECT activity_now()::timestamptz(3) AS at'))[0]!.at;
  // The first page also takes what was written a moment after `now`.
  const last: Position = cursor?.last ?? [moved(now, aheadMs), 0];
  const rows = await db.query<Row>(settledSql, [env, user, cursor?.at ?? last[0], ...last, limit + 1]);
  const at = cursor || !rows[0] || rows[0].at < now ? now : rows[0].at;
  const overlapFrom = moved(at, -limits.syncOverlapMs);
  if (cursor) {
    const seen = new Set(cursor.seen);
    const settled = new Set(rows.map((r) => r.no));
    const recent = await db.query<{ no: number; at: string | null; before: string }>(recentSql, [
      env,
      user,
      at,
      overlapFrom,
    ]);
    for (const { no, at: stood, before } of recent) {
      if (stood === null || seen.has(no) || settled.has(no)) continue;
      const place = [stood, before].find((candidate) => below({ no, at: candidate }, last));
      if (place !== undefined) rows.push({ no, at: place });
    }
    rows.sort(newestFirst);
  }
  const wanted = rows.slice(0, limit);
  const items = await listItems(
    db,
    env,
    user,
    wanted.map((r) => r.no),
    levels,
  );
  // Null if the user left the conversation, or it was deleted, between the two queries.
  const views = wanted.map((r) => items.get(r.no) ?? null);
  const page = wanted.slice(0, fitting(views));
  const data = views.slice(0, page.length).filter((item) => item !== null);
  if (page.length === rows.length) return { data, nextCursor: null };
  const end = page.at(-1)!;
  const seen = [...(cursor?.seen ?? []), ...page.filter((r) => r.at > overlapFrom).map((r) => r.no)].slice(
    -maxSeen,
  );
  return { data, nextCursor: encodeCursor({ at, last: [end.at, end.no], seen } satisfies Cursor) };
}
