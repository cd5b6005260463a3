import type { Tx } from '../platform/postgres/db.ts';

/** A conversation whose row this transaction holds. */
export interface LockedConversation {
  env: number;
  no: number;
  id: string;
  type: 'direct' | 'group';
  name: string | null;
  metadata: string | null;
  lastSeq: number;
  createdAt: string;
  deletedAt: string | null;
  /** When it was locked: the time of everything that this transaction does in it. */
  lockedAt: string;
  /** The same by the clock that stamps activity. */
  activeAt: string;
}

/** How long a change waits for a conversation that somebody else holds, in milliseconds; then it is service_unavailable. */
const waitMs = 1_000;

/**
 * The wait is set before the row is locked, for this transaction: it would otherwise keep its connection from others for longer. The
 * clock is read when the row is had: columns of the locking query itself are computed before it waits.
 */
const locking = (where: string): string =>
  `WITH waiting AS MATERIALIZED (SELECT set_config('lock_timeout', '${waitMs}', true)),
   held AS MATERIALIZED (
     SELECT c.* FROM waiting, conversations c WHERE c.env = $1 AND ${where} FOR NO KEY UPDATE OF c
   ), timed AS MATERIALIZED (
     SELECT held.*, activity_clock() AS clock FROM held
   )
   SELECT env, no, id, type, name, metadata, last_seq AS "lastSeq", created_at AS "createdAt", deleted_at AS "deletedAt",
     (clock).at AS "lockedAt", (clock).active AS "activeAt" FROM timed`;

/** Holds the conversation until the transaction ends; nothing else can be appended meanwhile. */
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
