import { ApiError, limits } from '@parley/protocol';
import type { Input, SyncResult } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { Context } from '../context.ts';

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
  return syncUser(ctx.db, ctx.env.no, ctx.caller.user.no, input.cursor);
}

export async function syncUser(
  db: Queryable,
  env: number,
  user: number,
  cursor: string | null,
): Promise<SyncResult> {
  const since = cursor === null ? null : decode(cursor);
  const now = (
    await db.query<{ now: number }>('SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now')
  )[0]!.now;
  const fullReload = since !== null && now - since > limits.syncCursorDays * dayMs;
  if (since === null || fullReload)
    return { conversations: await everything(db, env, user), removed: [], cursor: encode(now), fullReload };
  const from = new Date(Math.min(since, now) - limits.syncOverlapMs).toISOString();
  const [conversations, removed] = await Promise.all([
    changed(db, env, user, from),
    removedSince(db, env, user, from),
  ]);
  return { conversations, removed, cursor: encode(now), fullReload };
}

type Item = SyncResult['conversations'][number];
const item = `c.id, c.last_seq AS "lastSeq", c.message_count - m.read_count - m.own_unread AS "unreadCount"`;

const everything = (db: Queryable, env: number, user: number): Promise<Item[]> =>
  db.query<Item>(
    `SELECT ${item} FROM members m JOIN conversations c ON c.env = m.env AND c.no = m.conv
     WHERE m.env = $1 AND m.usr = $2 AND c.deleted_at IS NULL ORDER BY c.last_activity_at DESC`,
    [env, user],
  );

/** Found by activity step, which may lag the exact time by one. */
const changed = (db: Queryable, env: number, user: number, from: string): Promise<Item[]> =>
  db.query<Item>(
    `SELECT ${item} FROM (
       SELECT conv FROM members WHERE env = $1 AND usr = $2 AND act >= activity_step($3::timestamptz) - 1
       UNION SELECT conv FROM members WHERE env = $1 AND usr = $2 AND self_act >= activity_step($3::timestamptz) - 1
     ) x
     JOIN members m ON m.env = $1 AND m.conv = x.conv AND m.usr = $2
     JOIN conversations c ON c.env = $1 AND c.no = x.conv
     WHERE c.deleted_at IS NULL AND (c.last_activity_at > $3::timestamptz OR m.self_at > $3::timestamptz)
     ORDER BY c.last_activity_at DESC`,
    [env, user, from],
  );

const removedSince = async (db: Queryable, env: number, user: number, from: string): Promise<string[]> =>
  (
    await db.query<{ id: string }>(
      `SELECT c.id FROM departures d JOIN conversations c ON c.env = d.env AND c.no = d.conv
       WHERE d.env = $1 AND d.usr = $2 AND d.at > $3::timestamptz`,
      [env, user, from],
    )
  ).map((r) => r.id);
