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
  const again = repeated(batch);
  if (again === null) return appendRound(db, batch);
  // Messages that must see another of this batch committed: the same clientMsgId again. Whatever repeats it then is a duplicate.
  const results = new Map<NewMessage, Appended | Error>();
  const first = batch.filter((m) => !again.has(m));
  (await appendRound(db, first)).forEach((result, i) => results.set(first[i]!, result));
  for (const message of again) {
    try {
      results.set(message, (await appendRound(db, [message]))[0]!);
    } catch (error) {
      // What the rounds before committed must not be run again with the rest.
      results.set(message, error as Error);
    }
  }
  return batch.map((m) => results.get(m)!);
}

/** The messages whose clientMsgId an earlier one of the batch has. */
function repeated(batch: NewMessage[]): Set<NewMessage> | null {
  if (batch.length === 1) return null;
  const keys = new Set<string>();
  let again: Set<NewMessage> | null = null;
  for (const message of batch) {
    if (message.clientMsgId === null) continue;
    const key = `${message.sender} ${message.conversationId} ${message.clientMsgId}`;
    if (keys.size === keys.add(key).size) (again ??= new Set()).add(message);
  }
  return again;
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

async function appendRound(db: Queryable, batch: NewMessage[]): Promise<(Appended | Error)[]> {
  let items = batch;
  const results = new Map<NewMessage, Appended | Error>();
  while (items.length > 0) {
    let answers: (Appended | Error | null)[];
    try {
      answers = await appendOnce(db, items);
    } catch (error) {
      if (results.size === 0) throw error;
      answers = items.map(() => error as Error);
    }
    if (items === batch && !answers.includes(null)) return answers as (Appended | Error)[];
    const waiting = items;
    items = [];
    answers.forEach((answer, i) => {
      if (answer === null) items.push(waiting[i]!);
      else results.set(waiting[i]!, answer);
    });
  }
  return batch.map((m) => results.get(m)!);
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
