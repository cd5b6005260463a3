import type { Queryable } from '../../../platform/postgres/db.ts';
import { arraysOf } from '../../../platform/postgres/rows.ts';
import { blocked } from '../../lanes.ts';
import type { Blocked } from '../../lanes.ts';
import { refusal } from '../../refusals.ts';

export interface ReadMark {
  env: number;
  conversationId: string;
  user: number;
  seq: number;
}
export interface ReadMarked {
  lastReadSeq: number;
  unreadCount: number;
  mentionUnreadCount: number;
  changed: boolean;
}

type ReadAnswer = ReadMarked | Error | Blocked;

/** Moves read marks forward, many at once; `blocked` where another transaction has locked the conversation. */
export async function readBatch(
  db: Queryable,
  items: ReadMark[],
  waitMs: number | null,
): Promise<ReadAnswer[]> {
  const rows = await db.query<ReadMarked & { ord: number; status: string }>(
    `SELECT ord, status, read_seq AS "lastReadSeq", unread AS "unreadCount", mentions AS "mentionUnreadCount", changed
     FROM mark_read($1, $2, $3, $4, $5)`,
    [...arraysOf(items, 'env', 'conversationId', 'user', 'seq'), waitMs],
  );
  const results = new Array<ReadAnswer>(items.length);
  for (const { ord, status, ...marked } of rows)
    results[ord - 1] = status === 'ok' ? marked : status === 'blocked' ? blocked : refusal(status);
  return results;
}
