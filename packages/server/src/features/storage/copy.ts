import type { Clock } from '../../platform/clock.ts';
import type { History, MessageRecord } from '../../platform/history/port.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Db, Queryable } from '../../platform/postgres/db.ts';
import { messagesFrom } from '../sql/message-reader.ts';
import { confirmCopy } from './sql/confirm.ts';
import { conversationRecords, messageRecord, reactionsOf } from './records.ts';
import type { Placed } from './records.ts';
import { forgetSink, setMode } from './sql.ts';
import type { Copy } from './sql.ts';
import { thawMessages } from './thaw.ts';
import { pump } from './write.ts';
import type { Refused, Writer } from './write.ts';
import {
  conversationsFrom,
  lockCopy,
  nextCold,
  replaceCopy,
  runningTransactions,
  setAllWarm,
} from './sql/copy.ts';
import { holdConversation, stayedAway } from './sql/thaw.ts';

/**
 * Copies in the background, batch by batch: conversations in the order of their creation, messages in the order of
 * their seq. The position is stored together with the result of a batch, so a crash repeats at most the batches that
 * were under way.
 */

export interface CopyContext {
  db: Db;
  env: number;
  history: History;
  previous: History | null;
  /** How many rows a batch has at most. */
  size: number;
  /** The next conversations, ascending, as an earlier batch found them; it keeps them here for the batches after it. */
  ahead: { no: number; id: string; flags: number }[];
}

export interface CopyBatch {
  /** Where the copy continues; null if it is done. */
  next: Copy | null;
  /** Records to write into the active slot. */
  records: Placed[];
  /** Records to bring back into our store; null if there are none. */
  back: { conv: number; records: MessageRecord[]; last: boolean } | null;
  /** How many messages of the batch count as done. */
  count: number;
}

export interface CopyOptions {
  db: Db;
  node: string;
  clock: Pick<Clock, 'monotonic'>;
  logger: Logger;
  writer: Writer;
}

export interface CopyTurn extends Pick<CopyContext, 'env' | 'history' | 'previous'> {
  until: number;
  onDone(): void;
}

/** A batch looks at fewer conversations if they have more people than this, present and former. One may have more. */
const mostPeople = 5_000;
/** How many messages a page from a customer's database has. */
const pageSize = 200;

/** Whether the copy reads from our store. Then no record is in two of its batches. */
const isFromOurs = ({ kind }: Copy): boolean => kind === 'fill' || kind === 'rewrite';

export const readBatch = (ctx: CopyContext, copy: Copy): Promise<CopyBatch> =>
  isFromOurs(copy) ? fromOurs(ctx, copy) : fromTheirs(ctx, copy);

const ended = ({ then, ...copy }: Copy): Copy | null =>
  then ? { ...copy, kind: then, conv: 0, seq: 0 } : null;

/** For `fill` and `rewrite`: reads from our store. */
async function fromOurs({ db, env, size, ahead }: CopyContext, copy: Copy): Promise<CopyBatch> {
  if ((ahead.at(-1)?.no ?? -1) < copy.conv) {
    const found = await conversationsFrom(db, env, copy.conv);
    let people = 0;
    const fitting = found.filter((one, i) => (people += one.people) <= mostPeople || i === 0);
    ahead.splice(0, Infinity, ...fitting);
  }
  const upTo = ahead.at(-1)?.no;
  if (upTo === undefined) return { next: ended(copy), records: [], back: null, count: 0 };
  // Hard-deleted messages are included: their stubs keep late repetitions from restoring them.
  const rows = await messagesFrom(db, env, { conv: copy.conv, seq: copy.seq }, upTo, size);
  const last = rows.length === size ? rows.at(-1)! : null;
  const reached = last?.conv ?? upTo;
  const heads = ahead
    .map(({ no }) => no)
    .filter((no) => no <= reached && (no > copy.conv || (no === copy.conv && copy.seq === 0)));
  const known = new Map(ahead.map((one) => [one.no, one]));
  // A conversation that was committed since is in the log, with all its messages; a cold message is there already.
  const here = rows.flatMap((row) => {
    const conversation = known.get(row.conv);
    return row.id === null || !conversation
      ? []
      : [{ ...row, cid: conversation.id, flags: conversation.flags }];
  });
  const reactions = await reactionsOf(db, env, here);
  const messages = here.map((row): Placed => {
    const { conv, seq: message } = row;
    return { record: messageRecord(row, row.cid, reactions.get(`${conv} ${message}`)), conv, message };
  });
  return {
    next: { ...copy, ...(last ? { conv: last.conv, seq: last.seq } : { conv: upTo + 1, seq: 0 }) },
    records: [...(await conversationRecords(db, env, heads)), ...messages],
    back: null,
    count: rows.length,
  };
}

/** For `move` and `return`: reads a page of one conversation that only a customer's database has. */
async function fromTheirs({ db, env, history, previous }: CopyContext, copy: Copy): Promise<CopyBatch> {
  const conv = await nextCold(db, env, copy.conv);
  if (!conv) return { next: ended(copy), records: [], back: null, count: 0 };
  const after = conv.no === copy.conv ? copy.seq : 0;
  const source = copy.kind === 'move' ? previous! : history;
  const { data, hasMore, end } = await source.read({ conversationId: conv.id, after, limit: pageSize });
  const next = {
    ...copy,
    ...(hasMore ? { conv: conv.no, seq: end ?? data[0]!.seq } : { conv: conv.no + 1, seq: 0 }),
  };
  if (copy.kind === 'return')
    return {
      next,
      records: [],
      back: { conv: conv.no, records: data, last: !hasMore },
      count: 0,
    };
  const heads = after === 0 ? await conversationRecords(db, env, [conv.no]) : [];
  const records = [...data]
    .reverse()
    .map((record): Placed => ({ record, conv: conv.no, message: record.seq }));
  return { next, records: [...heads, ...records], back: null, count: data.length };
}

/**
 * Copies until it is late. `onDone` is called for every batch that is written. Returns where the copy continues; null
 * if it is done, cancelled, or belongs to another process.
 */
export async function runCopy(
  { db, node, clock, logger, writer }: CopyOptions,
  { env, until, history, previous, onDone }: CopyTurn,
  start: Copy,
): Promise<Copy | null> {
  const ahead: CopyContext['ahead'] = [];
  const none: Refused = new Map();
  let at: Copy | null = start;
  let missing = start.missing ?? 0;
  await pump<CopyBatch, { refused: Refused; count: number; missing: number }>(
    {
      async read(after) {
        const from = after ? after.next : start;
        if (from?.kind !== start.kind || (after && clock.monotonic() > until)) return null;
        return readBatch({ db, env, history, previous, size: writer.sizeOf(env), ahead }, from);
      },
      async write({ records, back, count }) {
        if (back)
          return {
            refused: none,
            count: await db.tx((tx) => thawMessages(tx, env, back.conv, back.records, true)),
            missing: back.last ? await stayedAway(db, env, back.conv) : 0,
          };
        // The same revision is replaced too: a database that was in use before may still name users who were erased.
        const refused = await writer.write(env, history, records, true);
        // Messages that the new database refuses are put back into our store, because the previous one will not be
        // asked any more.
        if (start.kind === 'move') await keep(db, env, refused);
        return { refused, count, missing: 0 };
      },
      async confirm(batch, written) {
        onDone();
        missing += written.missing;
        const done = Math.min(start.total, at!.done + written.count);
        at = batch.next && { ...batch.next, done, missing };
        // Moved messages are cold already.
        const placed = start.kind === 'move' ? [] : batch.records;
        const isOurs =
          at === null && start.kind === 'return'
            ? await endReturn(db, { env, node, startedAt: start.startedAt, missing })
            : await confirmCopy(db, { env, node, placed, refused: written.refused }, start, at);
        if (!isOurs) at = null;
        else if (at === null && missing > 0)
          logger.warn(
            { env, missing },
            'messages were no longer in a history database: history leaves them out',
          );
        return isOurs;
      },
    },
    isFromOurs(start) ? history.writesAtOnce : 1,
  );
  return at;
}

/** Everything is back: from here on nothing needs the customer's database. Returns false if the copy is no longer ours. */
const endReturn = (
  db: Db,
  { env, node, startedAt, missing }: { env: number; node: string; startedAt: string; missing: number },
): Promise<boolean> =>
  db.tx(async (tx) => {
    if (!(await lockCopy(tx, env, node, startedAt))) return false;
    await forgetSink(tx, env);
    await setAllWarm(tx, env);
    await setMode(tx, env, { mode: 'managed', copy: null, missing });
    return true;
  });

async function keep(db: Db, env: number, refused: Refused): Promise<void> {
  for (const { record, conv } of refused.keys())
    if (record.kind === 'message')
      await db.tx(async (tx) => {
        await holdConversation(tx, env, conv);
        await thawMessages(tx, env, conv, [record], true);
      });
}

/**
 * A change whose transaction began before the sink listened is in no log. So copying begins when all such
 * transactions have ended; returns whether they have.
 */
export async function begun(db: Queryable, env: number, copy: Copy): Promise<boolean> {
  if (copy.kind !== 'fill' || copy.done > 0) return true;
  // A transaction has its number before it looks whether the sink listens, because it locks the conversation first.
  const { oldest, next } = await runningTransactions(db);
  if (oldest >= (copy.seenXid ?? next)) return true;
  if (copy.seenXid === undefined) await replaceCopy(db, env, { ...copy, seenXid: next });
  return false;
}
