import type { Queryable, Tx } from '../../platform/postgres/db.ts';
import { column } from '../../platform/postgres/rows.ts';

/** A conversation whose row this transaction has locked. */
export interface LockedConversation {
  env: number;
  no: number;
  id: string;
  type: 'direct' | 'group';
  name: string | null;
  metadata: string | null;
  /** JSON; null: all as by default. */
  rules: string | null;
  lastSeq: number;
  /** What extensions it has (features/sql/flags.ts). */
  flags: number;
  createdAt: string;
  deletedAt: string | null;
  /** When it was locked; everything that this transaction does in it gets this time. */
  lockedAt: string;
  /** The same moment by the clock of activity (store_clock.sql). */
  activeAt: string;
}

/** Milliseconds that a change waits for a locked conversation; after that it is service_unavailable. */
const waitMs = 1_000;

/**
 * The time-out is set before the row is locked, and for this transaction only, because a longer wait would keep the
 * connection from others. The clock is read once the row is locked: columns of the locking query itself are computed
 * before it waits.
 */
const locking = (where: string): string =>
  `WITH waiting AS MATERIALIZED (SELECT set_config('lock_timeout', '${waitMs}', true)),
   held AS MATERIALIZED (
     SELECT c.* FROM waiting, conversations c WHERE c.env = $1 AND ${where} FOR NO KEY UPDATE OF c
   ), timed AS MATERIALIZED (
     SELECT held.*, activity_clock() AS clock FROM held
   )
   SELECT env, no, id, type, name, metadata, rules, last_seq AS "lastSeq", flags, created_at AS "createdAt", deleted_at AS "deletedAt",
     (clock).at AS "lockedAt", (clock).active AS "activeAt" FROM timed`;

/** Locks the conversation until the transaction ends; nothing else can be appended meanwhile. */
export async function lockConversation(
  tx: Tx,
  env: number,
  id: string,
): Promise<LockedConversation | undefined> {
  const [row] = await tx.query<LockedConversation>(locking('c.id = $2'), [env, id]);
  return row;
}

export async function lockConversationByNo(
  tx: Tx,
  env: number,
  no: number,
): Promise<LockedConversation | undefined> {
  const [row] = await tx.query<LockedConversation>(locking('c.no = $2'), [env, no]);
  return row;
}

/** Those of these conversations that nobody has locked at this moment. */
export const unlockedConversations = (
  db: Queryable,
  env: number,
  convs: readonly number[],
): Promise<number[]> =>
  column(db, 'SELECT no FROM conversations WHERE env = $1 AND no = ANY($2) FOR NO KEY UPDATE SKIP LOCKED', [
    env,
    convs,
  ]);
