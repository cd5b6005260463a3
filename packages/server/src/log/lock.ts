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
  /** When it was locked: the time of everything that this transaction does in it. Never before an earlier event of the conversation. */
  lockedAt: string;
}

/** How long a change waits for a conversation that somebody else holds, in milliseconds; then it is service_unavailable. */
const waitMs = 1_000;

const columns = `env, no, id, type, name, metadata, last_seq AS "lastSeq", created_at AS "createdAt", deleted_at AS "deletedAt",
  greatest(clock_timestamp()::timestamptz(3), last_activity_at) AS "lockedAt"`;

/** Set before the row is locked, for this transaction: it would otherwise keep its connection from others for longer. */
const waiting = `WITH waiting AS MATERIALIZED (SELECT set_config('lock_timeout', '${waitMs}', true))`;

/** Holds the conversation until the transaction ends; nothing else can be appended meanwhile. */
export async function lockConversation(
  tx: Tx,
  env: number,
  id: string,
): Promise<LockedConversation | undefined> {
  const [row] = await tx.query<LockedConversation>(
    `${waiting} SELECT ${columns} FROM waiting, conversations WHERE env = $1 AND id = $2 FOR NO KEY UPDATE OF conversations`,
    [env, id],
  );
  return row;
}

export async function lockConversationByNo(
  tx: Tx,
  env: number,
  no: number,
): Promise<LockedConversation | undefined> {
  const [row] = await tx.query<LockedConversation>(
    `${waiting} SELECT ${columns} FROM waiting, conversations WHERE env = $1 AND no = $2 FOR NO KEY UPDATE OF conversations`,
    [env, no],
  );
  return row;
}
