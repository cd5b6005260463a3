import { bigintArray, booleanArray, intArray, textArray } from '../platform/postgres/arrays.ts';
import type { Queryable } from '../platform/postgres/db.ts';
import { refusal, refusals } from './refusals.ts';

/** The group commit of messages, seen from this side: what the SQL function `append_batch` wants counted, and its answer. */

export interface NewMessage {
  env: number;
  conversationId: string;
  /** null: a system message. */
  sender: number | null;
  /** Sent by the user itself, so it also reads everything up to it. */
  own: boolean;
  clientMsgId: string | null;
  id: string;
  text: string | null;
  replyTo: string | null;
  metadata: string | null;
  /** JSON array of attachment ids. */
  attachments: string | null;
}

export interface Appended {
  status: 'ok' | 'duplicate';
  conv: number;
  seq: number;
  at: string;
  /** JSON of the attachment objects. */
  attachments: string | null;
}

/** Of the log's connections: `append_batch` locks rows in the order given when it goes row by row. */
export const logSettings = { enable_seqscan: 'off', enable_hashjoin: 'off', enable_mergejoin: 'off' };

const appendSql = `SELECT convs, seqs, times, attached, verdicts
  FROM append_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`;

const appendOneSql = `SELECT o_conv AS conv, o_seq AS seq, o_at AS at, o_verdicts AS verdicts
  FROM append_one($1, $2, $3, $4, $5, $6, $7, $8, $9)`;

interface Answer {
  convs: string | null;
  seqs: string | null;
  times: string | null;
  attached: (string | null)[] | null;
  verdicts: Verdict[] | null;
}
interface Verdict {
  ord: number;
  status: string;
  conv: number;
  seq: number;
  at: number;
  attachments: string | null;
}

/** Commits all; answers each message, with an error where it alone was refused. */
export async function appendBatch(db: Queryable, batch: NewMessage[]): Promise<(Appended | Error)[]> {
  const results = new Map<NewMessage, Appended | Error>();
  /** Keys whose message is committed: whatever repeats them is a duplicate, any number at once. */
  const known = new Set<string>();
  let items = batch;
  // One round, but for messages that must see another of this batch committed: the same clientMsgId or attachment again.
  while (items.length > 0) {
    const { first, again } = oncePerKey(items, known);
    let answers: (Appended | Error | null)[];
    try {
      answers = await appendOnce(db, first);
    } catch (error) {
      // What an earlier round committed must not be run again with the rest.
      if (results.size === 0) throw error;
      for (const item of items) results.set(item, error as Error);
      break;
    }
    items = again;
    answers.forEach((answer, i) => {
      const item = first[i]!;
      if (answer === null) return items.push(item);
      if (!(answer instanceof Error)) known.add(keyOf(item));
      return results.set(item, answer);
    });
  }
  return batch.map((item) => results.get(item)!);
}

const keyOf = (item: NewMessage): string => `${item.sender} ${item.conversationId} ${item.clientMsgId}`;

/** Each clientMsgId that is not committed yet at most once. */
function oncePerKey(
  items: NewMessage[],
  known: ReadonlySet<string>,
): { first: NewMessage[]; again: NewMessage[] } {
  const keys = new Set<string>();
  const first: NewMessage[] = [];
  const again: NewMessage[] = [];
  for (const item of items) {
    const key = keyOf(item);
    if (item.clientMsgId !== null && keys.has(key) && !known.has(key)) again.push(item);
    else first.push(item);
    keys.add(key);
  }
  return { first, again };
}

interface Conv {
  env: number;
  id: string;
  place: number;
  messages: number;
}
interface Sender {
  conv: Conv;
  user: number;
  own: number;
  after: number;
}

async function appendOne(db: Queryable, item: NewMessage): Promise<(Appended | Error | null)[]> {
  const { env, conversationId, sender, own, clientMsgId, id, text, replyTo, metadata } = item;
  const [row] = await db.query<{ conv: number; seq: number; at: number; verdicts: Verdict[] | null }>(
    appendOneSql,
    [env, conversationId, sender, own, clientMsgId, id, text, replyTo, metadata],
  );
  const { verdicts, conv, seq, at } = row!;
  if (verdicts) return inOrder(verdicts, 1);
  return [{ status: 'ok', conv, seq, at: new Date(at).toISOString(), attachments: null }];
}

/** null where the message must come again: it names an attachment that another of the batch took, or not. */
async function appendOnce(db: Queryable, items: NewMessage[]): Promise<(Appended | Error | null)[]> {
  if (items.length === 1 && items[0]!.attachments === null) return appendOne(db, items[0]!);
  const convs = new Map<string, Conv>();
  const senders = new Map<string, Sender>();
  const ofMessage: Conv[] = [];
  const ranks: number[] = [];
  for (const { env, conversationId, sender, own } of items) {
    const key = `${env} ${conversationId}`;
    let conv = convs.get(key);
    if (!conv) convs.set(key, (conv = { env, id: conversationId, place: 0, messages: 0 }));
    ofMessage.push(conv);
    ranks.push(++conv.messages);
    if (sender === null) continue;
    const member = `${sender} ${key}`;
    let known = senders.get(member);
    if (!known) senders.set(member, (known = { conv, user: sender, own: 0, after: 0 }));
    if (own) {
      known.own = conv.messages;
      known.after = 0;
    } else known.after++;
  }
  // The order in which all that lock several conversations lock them.
  const ordered = [...convs.values()].sort((a, b) => a.env - b.env || (a.id < b.id ? -1 : 1));
  ordered.forEach((conv, i) => {
    conv.place = i + 1;
  });
  const sending = [...senders.values()];
  const [row] = await db.query<Answer>(appendSql, [
    bigintArray(ordered.map((c) => c.place)),
    intArray(ordered.map((c) => c.env)),
    textArray(ordered.map((c) => c.id)),
    intArray(ordered.map((c) => c.messages)),
    intArray(sending.map((s) => s.conv.place)),
    bigintArray(sending.map((s) => s.user)),
    intArray(sending.map((s) => s.own)),
    intArray(sending.map((s) => s.after)),
    intArray(ofMessage.map((c) => c.place)),
    intArray(ranks),
    bigintArray(items.map((i) => i.sender)),
    booleanArray(items.map((i) => i.own)),
    textArray(items.map((i) => i.clientMsgId)),
    textArray(items.map((i) => i.id)),
    textArray(items.map((i) => i.text)),
    unlessEmpty(items.map((i) => i.replyTo)),
    unlessEmpty(items.map((i) => i.metadata)),
    unlessEmpty(items.map((i) => i.attachments)),
  ]);
  const { verdicts, attached } = row!;
  if (verdicts) return inOrder(verdicts, items.length);
  const numbers = row!.convs!.split(',');
  const lasts = row!.seqs!.split(',');
  const times = row!.times!.split(',').map((ms) => new Date(Number(ms)).toISOString());
  return ofMessage.map(({ place }, i) => ({
    status: 'ok',
    conv: Number(numbers[place - 1]),
    seq: Number(lasts[place - 1]) + ranks[i]!,
    at: times[place - 1]!,
    attachments: attached?.[i] ?? null,
  }));
}

/** Arrays in which nothing stands are not sent. */
const unlessEmpty = (values: (string | null)[]): Buffer | null =>
  values.some((v) => v !== null) ? textArray(values) : null;

function inOrder(verdicts: Verdict[], length: number): (Appended | Error | null)[] {
  const answers = new Array<Appended | Error | null>(length);
  for (const { ord, status, conv, seq, at, attachments } of verdicts)
    answers[ord - 1] =
      status === 'again'
        ? null
        : status in refusals
          ? refusal(status)
          : { status: status as Appended['status'], conv, seq, at: new Date(at).toISOString(), attachments };
  return answers;
}
