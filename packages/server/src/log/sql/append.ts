import type { Queryable } from '../../platform/postgres/db.ts';
import { arraysOf } from '../../platform/postgres/rows.ts';
import { blocked } from '../lanes.ts';
import type { Blocked } from '../lanes.ts';
import { refusal } from '../refusals.ts';

/**
 * The group commit of messages on the side of TypeScript: the arguments of append_messages.sql, and what its
 * answer means.
 */

export interface NewMessage {
  env: number;
  conversationId: string;
  /** null for a system message. */
  sender: number | null;
  /** True if the user itself sent it, which also marks everything up to it as read. */
  own: boolean;
  clientMsgId: string | null;
  id: string;
  text: string | null;
  replyTo: string | null;
  metadata: string | null;
  /** JSON array of attachment ids. */
  attachments: string | null;
  /** The seq of the message that it is an answer to in a thread. */
  thread?: number;
  /** JSON of what extensions keep with a message. */
  extras?: string;
  /** A word list wants it reported. */
  reported?: boolean;
}

export type Appended =
  | {
      status: 'ok';
      conv: number;
      seq: number;
      at: string;
      /** JSON of the attachment objects. */
      attachments: string | null;
    }
  /** This clientMsgId was already sent, as the message with this seq. */
  | { status: 'duplicate'; conv: number; seq: number };

type Answer = Appended | Error | Blocked;

/**
 * Settings of the log's connections. The statements of the append functions find rows one by one, even if the tables
 * were empty when they were planned. The lock time-out is for unforeseen locks: those of conversations are never
 * waited for.
 */
export const logSettings = {
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  lock_timeout: '1000',
  // A batch takes milliseconds, and its senders wait for it.
  statement_timeout: '10000',
};

/**
 * Three for messages and three for read marks: one for the batch, one for blocked conversations that are tried
 * together, and one for a conversation that waits for its lock.
 */
export const logConnections = 6;

/**
 * Commits all that can be committed and returns one answer per message: an error if it was refused, `blocked` if
 * another transaction has locked its conversation.
 * @param waitMs milliseconds to wait for such a conversation; null means no wait.
 * @param noted called if rows were left in the outbox.
 */
export async function appendBatch(
  db: Queryable,
  batch: NewMessage[],
  waitMs: number | null = null,
  noted: () => void = () => undefined,
): Promise<Answer[]> {
  // A message that repeats a clientMsgId of the same batch gets the answer of the first, as its duplicate.
  const firsts = new Map<string, number>();
  const items: NewMessage[] = [];
  const places = batch.map((item) => {
    const key =
      item.clientMsgId === null
        ? item.id
        : `${item.env} ${item.conversationId} ${item.sender} ${item.clientMsgId}`;
    const first = firsts.get(key);
    if (first !== undefined) return { place: first, repeats: true };
    firsts.set(key, items.length);
    return { place: items.push(item) - 1, repeats: false };
  });
  const answers = await append(db, items, waitMs, noted);
  return places.map(({ place, repeats }) => {
    const answer = answers[place]!;
    return repeats && answer !== blocked && !(answer instanceof Error)
      ? { status: 'duplicate', conv: answer.conv, seq: answer.seq }
      : answer;
  });
}

const appendSql = `SELECT convs, seqs, at, verdicts, originals, attached, noted
  FROM append_messages($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`;

async function append(
  db: Queryable,
  items: NewMessage[],
  waitMs: number | null,
  noted: () => void,
): Promise<Answer[]> {
  const convs = new Map<string, { env: number; id: string; place: number; messages: number }>();
  const ofItem = items.map(({ env, conversationId: id }) => {
    const key = `${env} ${id}`;
    let conv = convs.get(key);
    if (!conv) convs.set(key, (conv = { env, id, place: convs.size, messages: 0 }));
    return { conv, rank: ++conv.messages };
  });
  const listed = [...convs.values()];
  const [row] = await db.query<{
    convs: string;
    seqs: string;
    at: number;
    verdicts: (string | null)[] | null;
    originals: (string | null)[] | null;
    attached: (string | null)[] | null;
    noted: boolean | null;
  }>(appendSql, [
    ...arraysOf(listed, 'env', 'id'),
    ofItem.map(({ conv }) => conv.place + 1),
    ofItem.map(({ rank }) => rank),
    ...arraysOf(items, 'sender', 'own', 'clientMsgId', 'id', 'text'),
    unlessEmpty(items.map((i) => i.replyTo)),
    unlessEmpty(items.map((i) => i.metadata)),
    unlessEmpty(items.map((i) => i.attachments)),
    unlessEmpty(items.map((i) => i.thread ?? null)),
    unlessEmpty(items.map((i) => i.extras ?? null)),
    unlessEmpty(items.map((i) => i.reported || null)),
    waitMs,
  ]);
  const { verdicts, originals, attached } = row!;
  if (row!.noted) noted();
  const numbers = row!.convs.split(',').map(Number);
  /** For each conversation, the seq assigned last; at first the one from before this batch. */
  const seqs = row!.seqs.split(',').map(Number);
  const at = new Date(row!.at).toISOString();
  return ofItem.map(({ conv: { place } }, i) => {
    const verdict = verdicts?.[i] ?? null;
    if (verdict !== null) return answerOf(verdict, numbers[place]!, Number(originals![i]));
    const seq = (seqs[place] = seqs[place]! + 1);
    return { status: 'ok', conv: numbers[place]!, seq, at, attachments: attached?.[i] ?? null };
  });
}

function answerOf(verdict: string, conv: number, original: number): Answer {
  if (verdict === 'blocked') return blocked;
  return verdict === 'duplicate' ? { status: 'duplicate', conv, seq: original } : refusal(verdict);
}

/** null instead of an array of nothing but nulls, which then need not be sent. */
const unlessEmpty = <T>(values: (T | null)[]): (T | null)[] | null =>
  values.some((value) => value !== null) ? values : null;

/**
 * SQL of the moment for which it is asked, before the append, whether a message was sent before. A repetition is checked
 * no more, so it must still be one when the append comes.
 */
export const atAppend = "clock_timestamp() + interval '1 minute'";

/** Whether the sender has sent a message under this clientMsgId to the conversation (messages#dedup). */
export async function wasSent(
  db: Queryable,
  sent: { env: number; conversationId: string; sender: number | null; clientMsgId: string },
): Promise<boolean> {
  const rows = await db.query(
    `SELECT 1 FROM conversations c CROSS JOIN LATERAL sent_before(c.env, c.no, $3, $4, ${atAppend}) s WHERE c.id = $2 AND c.env = $1`,
    [sent.env, sent.conversationId, sent.sender, sent.clientMsgId],
  );
  return rows.length > 0;
}
