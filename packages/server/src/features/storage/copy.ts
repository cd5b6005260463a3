import type { Engine, MessageRecord } from '../../platform/history/port.ts';
import type { Db, Queryable } from '../../platform/postgres/db.ts';
import { messagesFrom } from '../message-reader.ts';
import { conversationRecords, messageRecord, mostFormer } from './records.ts';
import type { Placed } from './records.ts';
import type { Copy } from './sql.ts';
import { thawMessages } from './thaw.ts';

/**
 * Copies in the background, batch by batch: conversations in the order of their creation, messages in the order of
 * their seq. The position is stored together with the result of a batch, so a crash repeats at most the batch that
 * was running.
 */

export interface CopyContext {
  db: Db;
  env: number;
  history: Engine;
  previous: Engine | null;
  /** How many rows a batch has at most. */
  size: number;
  /** The next conversations, ascending, as an earlier batch found them; it keeps them here for the batches after it. */
  ahead: { no: number; id: string }[];
}

export interface CopyBatch {
  /** Where the batch began, and where the copy continues; null if it is done. */
  from: Copy;
  next: Copy | null;
  /** Records to write into the active slot. */
  records: Placed[];
  /** Records to bring back into our store; null if there are none. */
  back: { conv: number; records: MessageRecord[]; last: boolean } | null;
  /** How many messages of the batch count as done. */
  count: number;
}

/** How many conversations one batch looks at: fewer, if they have more people, present and former. One may have more. */
const conversations = 50;
const mostPeople = 5_000;
/** How many messages a page from a customer's database has. */
const pageSize = 200;

/** Whether the copy reads from our store. Then no record is in two of its batches. */
export const isFromOurs = ({ kind }: Copy): boolean => kind === 'fill' || kind === 'rewrite';

export const readBatch = (ctx: CopyContext, copy: Copy): Promise<CopyBatch> =>
  isFromOurs(copy) ? fromOurs(ctx, copy) : fromTheirs(ctx, copy);

const ended = ({ then, ...copy }: Copy): Copy | null =>
  then ? { ...copy, kind: then, conv: 0, seq: 0 } : null;

/** For `fill` and `rewrite`: reads from our store. */
async function fromOurs({ db, env, size, ahead }: CopyContext, copy: Copy): Promise<CopyBatch> {
  if ((ahead.at(-1)?.no ?? -1) < copy.conv) {
    const found = await db.query<{ no: number; id: string; people: number }>(
      `SELECT c.no, c.id, (SELECT count(*) FROM members m WHERE m.env = c.env AND m.conv = c.no) + (SELECT count(*) FROM (
         SELECT 1 FROM departures d WHERE d.env = c.env AND d.conv = c.no ORDER BY d.at DESC LIMIT ${mostFormer}) f) AS people
       FROM conversations c WHERE c.env = $1 AND c.no >= $2 ORDER BY c.no LIMIT ${conversations}`,
      [env, copy.conv],
    );
    let people = 0;
    const fitting = found.filter((one, i) => (people += one.people) <= mostPeople || i === 0);
    ahead.splice(0, Infinity, ...fitting);
  }
  const upTo = ahead.at(-1)?.no;
  if (upTo === undefined) return { from: copy, next: ended(copy), records: [], back: null, count: 0 };
  // Hard-deleted messages are included: their stubs keep late repetitions from restoring them.
  const rows = await messagesFrom(db, env, { conv: copy.conv, seq: copy.seq }, upTo, size);
  const last = rows.length === size ? rows.at(-1)! : null;
  const reached = last?.conv ?? upTo;
  const heads = ahead
    .map(({ no }) => no)
    .filter((no) => no <= reached && (no > copy.conv || (no === copy.conv && copy.seq === 0)));
  const ids = new Map(ahead.map(({ no, id }) => [no, id]));
  const messages: Placed[] = [];
  for (const row of rows) {
    const conversationId = ids.get(row.conv);
    // A conversation that was committed since is in the log, with all its messages; a cold message is there already.
    if (conversationId === undefined || row.id === null) continue;
    messages.push({ record: messageRecord(row, conversationId), conv: row.conv, message: row.seq });
  }
  return {
    from: copy,
    next: { ...copy, ...(last ? { conv: last.conv, seq: last.seq } : { conv: upTo + 1, seq: 0 }) },
    records: [...(await conversationRecords(db, env, heads, 'all')), ...messages],
    back: null,
    count: rows.length,
  };
}

/** For `move` and `return`: reads a page of one conversation that only a customer's database has. */
async function fromTheirs({ db, env, history, previous }: CopyContext, copy: Copy): Promise<CopyBatch> {
  const [conv] = await db.query<{ no: number; id: string }>(
    `SELECT c.no, c.id FROM sink_conversations s JOIN conversations c ON c.env = s.env AND c.no = s.conv
     WHERE s.env = $1 AND s.conv >= $2 AND s.cold_seq > 0 ORDER BY s.conv LIMIT 1`,
    [env, copy.conv],
  );
  if (!conv) return { from: copy, next: ended(copy), records: [], back: null, count: 0 };
  const after = conv.no === copy.conv ? copy.seq : 0;
  const source = copy.kind === 'move' ? previous! : history;
  const { data, hasMore, end } = await source.read({ conversationId: conv.id, after, limit: pageSize });
  const next = {
    ...copy,
    ...(hasMore ? { conv: conv.no, seq: end ?? data[0]!.seq } : { conv: conv.no + 1, seq: 0 }),
  };
  if (copy.kind === 'return')
    return {
      from: copy,
      next,
      records: [],
      back: { conv: conv.no, records: data, last: !hasMore },
      count: 0,
    };
  const heads = after === 0 ? await conversationRecords(db, env, [conv.no], 'all') : [];
  const records = [...data]
    .reverse()
    .map((record): Placed => ({ record, conv: conv.no, message: record.seq }));
  return { from: copy, next, records: [...heads, ...records], back: null, count: data.length };
}

/**
 * Puts messages back into our store. The conversation's `cold_seq` must stay until the copy has passed it, because it
 * tells which conversations must be copied. Returns how many messages were missing here.
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

/** How many messages of a conversation did not come back, because the customer's database no longer has them. */
export async function stayedAway(db: Queryable, env: number, conv: number): Promise<number> {
  const [row] = await db.query<{ n: number }>(
    'SELECT count(*) AS n FROM messages WHERE env = $1 AND conv = $2 AND id IS NULL AND NOT hard',
    [env, conv],
  );
  return row!.n;
}

/**
 * A change whose transaction began before the sink listened is in no log. So copying begins when all such
 * transactions have ended; returns whether they have.
 */
export async function begun(db: Queryable, env: number, copy: Copy): Promise<boolean> {
  if (copy.kind !== 'fill' || copy.done > 0) return true;
  // A transaction has its number before it looks whether the sink listens, because it locks the conversation first.
  const [running] = await db.query<{ oldest: number; next: number }>(
    `SELECT pg_snapshot_xmin(s)::text::bigint AS oldest, pg_snapshot_xmax(s)::text::bigint AS next FROM pg_current_snapshot() s`,
  );
  const { oldest, next } = running!;
  if (oldest >= (copy.seenXid ?? next)) return true;
  if (copy.seenXid === undefined)
    await db.query(`UPDATE storage SET copy = $2 WHERE env = $1 AND copy ->> 'startedAt' = $3`, [
      env,
      JSON.stringify({ ...copy, seenXid: next }),
      copy.startedAt,
    ]);
  return false;
}
