import type { Queryable } from '../../../platform/postgres/db.ts';
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
  conv: number;
  lastReadSeq: number;
  unreadCount: number;
  mentionUnreadCount: number;
  changed: boolean;
}

const readSql = `SELECT ord, status, conv, read_seq, unread, mentions, changed FROM mark_read($1, $2, $3, $4, $5)`;

type ReadAnswer = ReadMarked | Error | Blocked;

/** Moves read marks forward, many at once; `blocked` where another transaction has locked the conversation. */
export async function readBatch(
  db: Queryable,
  items: ReadMark[],
  waitMs: number | null,
): Promise<ReadAnswer[]> {
  const rows = await db.query<{
    ord: number;
    status: string;
    conv: number;
    read_seq: number;
    unread: number;
    mentions: number;
    changed: boolean;
  }>(readSql, [
    items.map((i) => i.env),
    items.map((i) => i.conversationId),
    items.map((i) => i.user),
    items.map((i) => i.seq),
    waitMs,
  ]);
  const results = new Array<ReadAnswer>(items.length);
  for (const row of rows) {
    const { status, conv, read_seq: lastReadSeq, unread, mentions, changed } = row;
    if (status === 'ok')
      results[row.ord - 1] = {
        conv,
        lastReadSeq,
        unreadCount: unread,
        mentionUnreadCount: mentions,
        changed,
      };
    else results[row.ord - 1] = status === 'blocked' ? blocked : refusal(status);
  }
  return results;
}
