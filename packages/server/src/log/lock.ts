import type { Tx } from '../platform/postgres/db.ts';
import type { LockedConversation } from './conversation-log.ts';

const columns = `env, no, id, type, name, metadata, last_seq AS "lastSeq", created_at AS "createdAt", deleted_at AS "deletedAt"`;

/** Holds the conversation until the transaction ends; nothing else can be appended meanwhile. */
export async function lockConversation(
  tx: Tx,
  env: number,
  id: string,
): Promise<LockedConversation | undefined> {
  const [row] = await tx.query<LockedConversation>(
    `SELECT ${columns} FROM conversations WHERE env = $1 AND id = $2 FOR NO KEY UPDATE`,
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
    `SELECT ${columns} FROM conversations WHERE env = $1 AND no = $2 FOR NO KEY UPDATE`,
    [env, no],
  );
  return row;
}
