import type { History, MessageRecord } from '../../platform/history/port.ts';
import type { Db, Queryable } from '../../platform/postgres/db.ts';
import { messagesFrom } from '../messages/reader.ts';
import type { MessageRow } from '../messages/reader.ts';
import { conversationRecords, messageRecord } from './records.ts';
import type { Placed } from './records.ts';
import type { Copy } from './sql.ts';
import { thawMessages } from './thaw.ts';

/**
 * What is copied in the background, a batch at a time: conversations in the order of their creation, messages in the order of their
 * seq. Where it has come to is kept with what it did, so a crash repeats the batch that was under way, and no more.
 */

export interface CopyContext {
  db: Db;
  env: number;
  history: History;
  previous: History | null;
  /** Rows of a batch at most. */
  size: number;
}

export interface CopyBatch {
  /** Where it began, and where it goes on; null: it is done. */
  from: Copy;
  next: Copy | null;
  /** What is to be written into the active slot, */
  records: Placed[];
  /** or what is to come back into our store. */
  back: { conv: number; records: MessageRecord[] } | null;
  /** Messages of it that count as done. */
  count: number;
}

/** Conversations that one batch looks at, each with at most 500 members. */
const conversations = 50;
/** Of a page that is read from a customer's database. */
const pageSize = 200;

export function readBatch(ctx: CopyContext, copy: Copy): Promise<CopyBatch> {
  return copy.kind === 'fill' || copy.kind === 'rewrite' ? fromOurs(ctx, copy) : fromTheirs(ctx, copy);
}

const ended = ({ then, ...copy }: Copy): Copy | null =>
  then ? { ...copy, kind: then, conv: 0, seq: 0 } : null;

/** Of `fill` and `rewrite`: what our store holds. */
async function fromOurs({ db, env, size }: CopyContext, copy: Copy): Promise<CopyBatch> {
  const found = await db.query<{ no: number }>(
    `SELECT no FROM conversations WHERE env = $1 AND no >= $2 ORDER BY no LIMIT ${conversations}`,
    [env, copy.conv],
  );
  if (found.length === 0) return { from: copy, next: ended(copy), records: [], back: null, count: 0 };
  const upTo = found.at(-1)!.no;
  // Hard-deleted ones too: their stubs keep late repetitions away.
  const rows = await messagesFrom(db, env, { conv: copy.conv, seq: copy.seq }, upTo, size);
  const last = rows.length === size ? rows.at(-1)! : null;
  const reached = last?.conv ?? upTo;
  const heads = found.map((c) => c.no).filter((no) => no <= reached && (no > copy.conv || copy.seq === 0));
  const messages = rows
    .filter((row): row is MessageRow => row.id !== null)
    .map((row): Placed => ({ record: messageRecord(row), conv: row.conv, message: row.seq }));
  return {
    from: copy,
    next: { ...copy, ...(last ? { conv: last.conv, seq: last.seq } : { conv: upTo + 1, seq: 0 }) },
    records: [...(await conversationRecords(db, env, heads, [])), ...messages],
    back: null,
    count: rows.length,
  };
}

/** Of `move` and `return`: what only a customer's database has, a page of one conversation. */
async function fromTheirs({ db, env, history, previous }: CopyContext, copy: Copy): Promise<CopyBatch> {
  const [conv] = await db.query<{ no: number; id: string }>(
    `SELECT c.no, c.id FROM sink_conversations s JOIN conversations c ON c.env = s.env AND c.no = s.conv
     WHERE s.env = $1 AND s.conv >= $2 AND s.cold_seq > 0 ORDER BY s.conv LIMIT 1`,
    [env, copy.conv],
  );
  if (!conv) return { from: copy, next: ended(copy), records: [], back: null, count: 0 };
  const after = conv.no === copy.conv ? copy.seq : 0;
  const source = copy.kind === 'move' ? previous! : history;
  const { data, hasMore } = await source.read({ conversationId: conv.id, after, limit: pageSize });
  const next = {
    ...copy,
    ...(hasMore ? { conv: conv.no, seq: data[0]!.seq } : { conv: conv.no + 1, seq: 0 }),
  };
  if (copy.kind === 'return')
    return { from: copy, next, records: [], back: { conv: conv.no, records: data }, count: 0 };
  const heads = after === 0 ? await conversationRecords(db, env, [conv.no], []) : [];
  const records = [...data]
    .reverse()
    .map((record): Placed => ({ record, conv: conv.no, message: record.seq }));
  return { from: copy, next, records: [...heads, ...records], back: null, count: data.length };
}

/**
 * Back into our store. Where the conversation's floor is must stay until the copy has passed it: it says which conversations there are to
 * copy. Answers how many were missing here.
 */
export async function comeBack(
  tx: Queryable,
  env: number,
  conv: number,
  records: readonly MessageRecord[],
): Promise<number> {
  const [floor] = await tx.query<{ cold: number }>(
    'SELECT cold_seq AS cold FROM sink_conversations WHERE env = $1 AND conv = $2 FOR UPDATE',
    [env, conv],
  );
  const count = await thawMessages(tx, env, conv, records);
  if (floor && count > 0)
    await tx.query('UPDATE sink_conversations SET cold_seq = $3 WHERE env = $1 AND conv = $2', [
      env,
      conv,
      floor.cold,
    ]);
  return count;
}

/** A change whose transaction began before the sink listened is in no log: what is copied begins when they have all ended. */
export async function begun(db: Queryable, env: number, copy: Copy): Promise<boolean> {
  if (copy.kind !== 'fill' || copy.done > 0) return true;
  if (copy.seenAt === undefined) {
    const [row] = await db.query<{ at: string }>(
      "SELECT clock_timestamp()::timestamptz(3) + interval '1 millisecond' AS at",
    );
    await db.query(`UPDATE storage SET copy = $2 WHERE env = $1 AND copy ->> 'startedAt' = $3`, [
      env,
      JSON.stringify({ ...copy, seenAt: row!.at }),
      copy.startedAt,
    ]);
    return false;
  }
  const older = await db.query(
    `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
       AND xact_start <= $1::timestamptz LIMIT 1`,
    [copy.seenAt],
  );
  return older.length === 0;
}
