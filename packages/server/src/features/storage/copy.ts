import type { History } from '../../platform/history/port.ts';
import type { Db, Queryable } from '../../platform/postgres/db.ts';
import { messagesAfter } from '../messages/reader.ts';
import type { MessageRow } from '../messages/reader.ts';
import { conversationRecords, messageRecord } from './records.ts';
import type { Placed } from './records.ts';
import type { Copy } from './sql.ts';
import { thawMessages } from './thaw.ts';

/**
 * One step of what is copied in the background, a page of one conversation: conversations in the order of their creation, messages in
 * the order of their seq. Where it has come to is kept with what it did, so a crash repeats one page at most.
 */

export interface CopyContext {
  db: Db;
  env: number;
  /** Writes to the active slot; what it refuses is set aside. */
  write(records: Placed[], rewrite: boolean): Promise<void>;
  history: History;
  previous: History | null;
}

/** Of what is written, and of what is read from the customer's database. */
const writeSize = 500;
const pageSize = 200;

/** The copy as it goes on; null: it is done. */
export async function copyStep(ctx: CopyContext, copy: Copy): Promise<Copy | null> {
  const conv = await currentConversation(ctx, copy);
  if (!conv) return copy.then ? next(copy, copy.then) : null;
  const from = conv.no === copy.conv ? copy.seq : 0;
  const { last, count } = await steps[copy.kind](ctx, conv, from);
  const place = last === null ? { conv: conv.no + 1, seq: 0 } : { conv: conv.no, seq: last };
  return { ...copy, ...place, done: Math.min(copy.total, copy.done + count) };
}

function next({ then: _then, ...copy }: Copy, kind: Copy['kind']): Copy {
  return { ...copy, kind, conv: 0, seq: 0 };
}

interface Conversation {
  no: number;
  id: string;
}

/** `move` and `return` concern conversations with cold messages alone. */
async function currentConversation({ db, env }: CopyContext, copy: Copy): Promise<Conversation | undefined> {
  const cold = copy.kind === 'move' || copy.kind === 'return';
  const [row] = await db.query<Conversation>(
    cold
      ? `SELECT c.no, c.id FROM sink_conversations s JOIN conversations c ON c.env = s.env AND c.no = s.conv
         WHERE s.env = $1 AND s.conv >= $2 AND s.cold_seq > 0 ORDER BY s.conv LIMIT 1`
      : 'SELECT no, id FROM conversations WHERE env = $1 AND no >= $2 ORDER BY no LIMIT 1',
    [env, copy.conv],
  );
  return row;
}

type Step = (
  ctx: CopyContext,
  conv: Conversation,
  from: number,
) => Promise<{ last: number | null; count: number }>;

const write =
  (rewrite: boolean): Step =>
  async (ctx, conv, from) => {
    const head = from === 0 ? await conversationRecords(ctx.db, ctx.env, [conv.no], []) : [];
    const rows = await allAfter(ctx.db, ctx.env, conv.no, from, writeSize);
    const held = rows.filter((row): row is MessageRow => row.id !== null);
    const messages = held.map((row): Placed => ({
      record: messageRecord(row),
      conv: conv.no,
      message: row.seq,
    }));
    if (head.length + messages.length > 0) await ctx.write([...head, ...messages], rewrite);
    return { last: rows.length < writeSize ? null : rows.at(-1)!.seq, count: rows.length };
  };

/** Hard-deleted ones too: their stubs keep late repetitions away. */
const allAfter = (db: Queryable, env: number, conv: number, after: number, limit: number) =>
  messagesAfter(db, env, conv, after, limit, true);

const steps: Record<Copy['kind'], Step> = {
  fill: write(false),
  rewrite: write(true),
  move: async (ctx, conv, from) => {
    const head = from === 0 ? await conversationRecords(ctx.db, ctx.env, [conv.no], []) : [];
    const { data, hasMore } = await ctx.previous!.read({
      conversationId: conv.id,
      after: from,
      limit: pageSize,
    });
    const records = [...data]
      .reverse()
      .map((record): Placed => ({ record, conv: conv.no, message: record.seq }));
    if (head.length + records.length > 0) await ctx.write([...head, ...records], false);
    return { last: hasMore ? data[0]!.seq : null, count: data.length };
  },
  return: async (ctx, conv, from) => {
    const { data, hasMore } = await ctx.history.read({
      conversationId: conv.id,
      after: from,
      limit: pageSize,
    });
    const count = await ctx.db.tx((tx) => thawQuietly(tx, ctx.env, conv.no, data));
    return { last: hasMore ? data[0]!.seq : null, count };
  },
};

/** Where the conversation's floor is must stay until the copy has passed it: it says which conversations there are to copy. */
async function thawQuietly(
  tx: Queryable,
  env: number,
  conv: number,
  records: Parameters<typeof thawMessages>[3],
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
