import { databaseTypes, limits, Type } from '@parley/protocol';
import { validator } from '../validation.ts';
import type { Validator } from '../validation.ts';
import { HistoryError, historyErrorClasses } from './port.ts';
import type { Erasure, HistoryPage, HistoryRecord, MessageRecord, ReadRange } from './port.ts';
import { exactly, mostJson, messageSchema, number, orNull, text } from './record.ts';
import { bytesOf } from './shared.ts';
import type { HistorySource } from './target.ts';

/**
 * What the service and the process of customers' databases (child.ts) say to each other: frames of a header and JSON.
 * Every answer has a schema and a size that follow from its request; the process has to expect the worst from the
 * databases, and the service from the process.
 */

/** The first frame. */
export interface Settings {
  allowPrivate: boolean;
  /** Name servers; if empty, those of the system. */
  dnsServers: readonly string[];
}

export type Ask =
  | ({ op: 'open' | 'migrate'; source: HistorySource } & Tenant)
  | { op: 'test' | 'close' }
  | { op: 'write'; records: readonly HistoryRecord[]; rewrite: boolean }
  | { op: 'read'; range: ReadRange }
  | { op: 'get'; id: string }
  | { op: 'erase'; erasure: Erasure };
export type Op = Ask['op'];

interface Tenant {
  tenant: number;
  env: string;
}

export interface Told {
  value?: unknown;
  error?: { errorClass: string; message: string };
}

/** Ids of frames that answer nothing. */
export const settingsId = 0;
export const beatId = 1;
export const firstId = 2;

const kib = 1_024;
/** The largest request: a piece of a write has a million characters, or one record that is larger. */
export const askBytes = 32 * kib * kib;

/** How many bytes the answer to a request can need. */
export const answerBytes = (ask: Ask): number => bytesOf(ask.op === 'read' ? ask.range.limit : 1);

/**
 * How many bytes a database may send because of a request: besides the answer, what logins, locks and errors of 500
 * records take. MongoDB sends the keys of all that is erased; what is beyond is erased at the next try.
 */
export const receivedBytes = (ask: Ask): number =>
  answerBytes(ask) + (ask.op === 'erase' ? 64 : 4) * kib * kib;

/** The history that received more than half of all bytes; 0 if none did. */
export function mainOf(received: ReadonlyMap<number, number>): number {
  const all = [...received.values()].reduce((sum, bytes) => sum + bytes, 0);
  return [...received].find(([, bytes]) => bytes * 2 > all)?.[0] ?? 0;
}

const headerBytes = 16;

export interface Header {
  length: number;
  id: number;
  /** The number of an open history. */
  history: number;
  /** Unix seconds of the service's clock. */
  seconds: number;
}

export function frame(id: number, history: number, seconds: number, body: Buffer): Buffer[] {
  const header = Buffer.allocUnsafe(headerBytes);
  [body.length, id, history, seconds].forEach((value, i) => header.writeUInt32BE(value, i * 4));
  return body.length === 0 ? [header] : [header, body];
}

/** Takes frames out of a stream. `bound` says how long a frame may be; a longer one is an error, before it is read. */
export function frameReader(
  bound: (header: Header) => number,
  onFrame: (header: Header, body: Buffer) => void,
): (chunk: Buffer) => void {
  let chunks: Buffer[] = [];
  let size = 0;
  let header: Header | null = null;
  const take = (length: number): Buffer => {
    const whole = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
    chunks = whole.length > length ? [whole.subarray(length)] : [];
    size -= length;
    return whole.subarray(0, length);
  };
  return (chunk) => {
    chunks.push(chunk);
    size += chunk.length;
    for (;;) {
      if (header === null) {
        if (size < headerBytes) return;
        const bytes = take(headerBytes);
        const [length, id, history, seconds] = [0, 4, 8, 12].map((at) => bytes.readUInt32BE(at));
        header = { length: length!, id: id!, history: history!, seconds: seconds! };
        if (header.length > bound(header)) throw new Error('a frame is longer than it may be');
      }
      if (size < header.length) return;
      const [whole, body] = [header, take(header.length)];
      header = null;
      onFrame(whole, body);
    }
  };
}

const line = text(2_000);
const lines = Type.Array(line, { maxItems: 100 });
const report = Type.Object(
  {
    ok: Type.Boolean(),
    type: Type.Enum([...databaseTypes]),
    version: orNull(text(200)),
    role: orNull(text(200)),
    tls: orNull(Type.Object({ enabled: Type.Boolean(), verified: Type.Boolean() }, exactly)),
    schemaVersion: orNull(number),
    grants: lines,
    errors: lines,
    warnings: lines,
    rttMs: orNull(Type.Number()),
    databaseId: orNull(text(200)),
  },
  exactly,
);

const errorSchema = Type.Object(
  { errorClass: Type.Enum([...historyErrorClasses]), message: text(500) },
  exactly,
);
const nothing = Type.Object({}, exactly);
const told = (value: object) =>
  validator(
    Type.Object(
      { value: Type.Optional(value as typeof nothing), error: Type.Optional(errorSchema) },
      exactly,
    ),
  );
const answers: Record<Op, Validator> = {
  open: told(Type.Object({ writesAtOnce: Type.Integer({ minimum: 1, maximum: 4 }) }, exactly)),
  migrate: told(Type.Object({ runtimeUrl: orNull(text(10_000)), notes: lines }, exactly)),
  test: told(report),
  read: told(
    Type.Object({ data: Type.Array(Type.Unknown(), { maxItems: 1_000 }), hasMore: Type.Boolean() }, exactly),
  ),
  get: told(Type.Unknown()),
  write: told(nothing),
  erase: told(nothing),
  close: told(nothing),
};
const fits = validator(messageSchema);

const free = Type.Object({}, { 'x-metadata': true });
/** The JSON in columns of a message. */
const inner = {
  attachments: validator(Type.Array(free, { maxItems: limits.attachmentsPerMessage })),
  metadata: validator(free),
  extras: validator(Type.Object({})),
};
/** Null for what is no JSON, or not what the column can hold: a customer may have changed it. */
function jsonOf(name: keyof typeof inner, value: unknown): string | null {
  if (typeof value !== 'string' || value.length > mostJson[name]) return null;
  try {
    return inner[name](JSON.parse(value)) ? null : value;
  } catch {
    return null;
  }
}

/** What is wrong with messages that are left out, or with their JSON. */
export type OnUnfit = (problem: string) => void;

/** Null if it is not what a message can be. */
function messageOf(value: unknown, onUnfit: OnUnfit): MessageRecord | null {
  const found = { ...(value as MessageRecord) };
  for (const name of ['attachments', 'metadata', 'extras'] as const) {
    const json = jsonOf(name, found[name]);
    if (json === null && (found[name] ?? null) !== null) onUnfit(`${name} is not what a message can have`);
    found[name] = json;
  }
  const wrong = fits(found);
  if (wrong) onUnfit(wrong.message);
  return wrong ? null : found;
}

function pageOf({ after, before, limit }: ReadRange, sent: HistoryPage, onUnfit: OnUnfit): HistoryPage {
  if (sent.data.length > limit)
    throw new HistoryError('failed', undefined, 'it sent more messages than were asked for');
  const data: MessageRecord[] = [];
  const seqs: number[] = [];
  for (const one of sent.data as (MessageRecord | null)[]) {
    const seq = one?.seq;
    if (!Number.isSafeInteger(seq) || seq! <= (after ?? 0) || seq! >= (before ?? Infinity)) {
      onUnfit('seq is not one that was asked for');
      continue;
    }
    seqs.push(seq!);
    const found = messageOf(one, onUnfit);
    if (found) data.push(found);
  }
  const { hasMore } = sent;
  if (!hasMore || (data.length > 0 && data.length === sent.data.length)) return { data, hasMore };
  if (seqs.length === 0)
    throw new HistoryError('failed', undefined, 'none of the messages that it sent has a place');
  return {
    data,
    hasMore,
    end: before === undefined && after !== undefined ? Math.max(...seqs) : Math.min(...seqs),
  };
}

/**
 * What was answered; throws what the process answered instead, or what is wrong with the answer. A message that is not
 * what one can be is left out, because its owner may have changed it: the others are served all the same.
 */
export function readAnswer(ask: Ask, body: Buffer, onUnfit: OnUnfit = () => undefined): unknown {
  const answer = JSON.parse(body.toString()) as Told;
  const wrong = answers[ask.op](answer);
  if (wrong) throw new HistoryError('failed', undefined, wrongWith(wrong.message));
  if (answer.value === undefined && !answer.error)
    throw new HistoryError('failed', undefined, 'it sent nothing');
  if (answer.error) {
    const { errorClass, message: said } = answer.error;
    throw Object.assign(new HistoryError(errorClass as HistoryError['errorClass'], undefined), {
      message: said,
    });
  }
  if (ask.op === 'get') return answer.value && messageOf(answer.value, onUnfit);
  if (ask.op === 'read') return pageOf(ask.range, answer.value as HistoryPage, onUnfit);
  return answer.value;
}

/** The path begins with `value`, which only the two processes know. */
const wrongWith = (problem: string): string =>
  `in what it sent, ${problem.replace(/^value\.?/, '').replace(/\.$/, '')}`;
