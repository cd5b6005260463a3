import type { Block } from '@parley/protocol';
import type { Queryable, Tx } from '../../platform/postgres/db.ts';
import { anyRow, firstValue } from '../../platform/postgres/rows.ts';
import { guards } from '../../log/sql/guards.ts';
import type { TimedPlace } from '../pages.ts';

/**
 * Whoever changes a user's blocks locks the user's row first, and the conversation of the pair last; whoever creates such
 * a conversation locks both users. So the flag of the conversation always agrees with the rows.
 */

interface BlockRow extends Block {
  /** The blocked user. */
  no: number;
}

export const findBlock = (db: Queryable, env: number, user: number, blocked: number) =>
  firstValue<string>(db, 'SELECT at FROM blocks WHERE usr = $2 AND blocked = $3 AND env = $1', [
    env,
    user,
    blocked,
  ]);

/** Returns null if the user already blocks as many as it may. */
export async function insertBlock(
  tx: Tx,
  env: number,
  user: number,
  blocked: number,
  most: number,
): Promise<string | null> {
  const [row] = await tx.query<{ at: string }>(
    `INSERT INTO blocks (env, usr, blocked, at) SELECT $1, $2, $3, clock_timestamp()
     WHERE (SELECT count(*) FROM (SELECT 1 FROM blocks WHERE usr = $2 AND env = $1 LIMIT $4) x) < $4 RETURNING at`,
    [env, user, blocked, most],
  );
  return row?.at ?? null;
}

export const deleteBlock = (tx: Tx, env: number, user: number, blocked: number): Promise<boolean> =>
  anyRow(tx, 'DELETE FROM blocks WHERE usr = $2 AND blocked = $3 AND env = $1 RETURNING 1', [
    env,
    user,
    blocked,
  ]);

const pair = '(usr = $2 AND blocked = $3 OR usr = $3 AND blocked = $2)';

/** Whether one of the two blocks the other. */
export const pairBlocked = (db: Queryable, env: number, a: number, b: number): Promise<boolean> =>
  anyRow(db, `SELECT 1 FROM blocks WHERE env = $1 AND ${pair} LIMIT 1`, [env, a, b]);

/** Makes the flag of a locked conversation agree with the blocks of its two users. */
export async function flagPair(tx: Tx, env: number, conv: number, a: number, b: number): Promise<void> {
  await tx.query(
    `UPDATE conversations SET flags = CASE WHEN EXISTS (SELECT 1 FROM blocks WHERE env = $1 AND ${pair})
       THEN flags | ${guards.blockedPair} ELSE flags & ~${guards.blockedPair} END
     WHERE no = $4 AND env = $1`,
    [env, a, b, conv],
  );
}

/**
 * Waits for the reactions of the two that are being committed, after the flag was set. Reactions take no lock of the
 * conversation, but of the member (set_reactions), and read the flag after that.
 */
export async function awaitReactions(tx: Tx, env: number, conv: number): Promise<void> {
  await tx.query('SELECT 1 FROM members WHERE conv = $2 AND env = $1 ORDER BY usr FOR UPDATE', [env, conv]);
}

/** Those of the users who block this one. */
export async function blockersOf(
  db: Queryable,
  env: number,
  blocked: number,
  users: readonly number[],
): Promise<Set<number>> {
  if (users.length === 0) return new Set();
  const rows = await db.query<{ usr: number }>(
    'SELECT usr FROM blocks WHERE blocked = $2 AND usr = ANY($3) AND env = $1',
    [env, blocked, users],
  );
  return new Set(rows.map((row) => row.usr));
}

export const listBlocks = (
  db: Queryable,
  env: number,
  user: number,
  after: TimedPlace | null,
  limit: number,
): Promise<BlockRow[]> =>
  db.query<BlockRow>(
    `SELECT u.no, u.id AS "userId", b.at AS "blockedAt" FROM blocks b
     CROSS JOIN LATERAL (SELECT no, id FROM users WHERE no = b.blocked AND env = b.env LIMIT 1) u
     WHERE b.usr = $2 AND b.env = $1 AND ($3::timestamptz IS NULL OR (b.at, b.blocked) < ($3::timestamptz, $4::bigint))
     ORDER BY b.at DESC, b.blocked DESC LIMIT $5`,
    [env, user, after?.[0] ?? null, after?.[1] ?? null, limit],
  );

/** Those of and about an erased user. Its direct conversations stay as they are. */
export async function forgetBlocks(tx: Tx, env: number, user: number): Promise<void> {
  await tx.query('DELETE FROM blocks WHERE env = $1 AND (usr = $2 OR blocked = $2)', [env, user]);
}
