import type { Frame } from './network.ts';
import { firstName } from './people.ts';

/** What a frame says, in a few words. */

type Data = Readonly<Record<string, unknown>>;

const cut = (text: string, max = 60): string => (text.length > max ? `${text.slice(0, max - 1)}…` : text);
const part = (value: unknown): Data => (typeof value === 'object' && value !== null ? (value as Data) : {});
const who = (id: unknown): string => (typeof id === 'string' ? firstName(id) : 'somebody');
const count = (list: unknown): number => (Array.isArray(list) ? list.length : 0);
const people = (n: number): string => (n === 1 ? '1 person' : `${n} people`);
const marks = ({ userId, lastReadSeq, lastDeliveredSeq }: Data): string =>
  lastReadSeq === undefined
    ? `${who(userId)} has up to ${String(lastDeliveredSeq)}`
    : `${who(userId)} read up to ${String(lastReadSeq)}`;

export const typeOf = ({ data }: Frame): string => String(data['e'] ?? data['t'] ?? '?');

/** Frames that say little: they are shown quietly. */
const quiet = new Set(['hb', 'sync', 'ack', 'delivered', 'presence.watch', 'call.stats', 'call.speakers']);
export const isQuiet = (frame: Frame): boolean => quiet.has(typeOf(frame));

const about: Record<string, (d: Data, frame: Data) => string> = {
  auth: () => 'with a token',
  hello: (d) => `you are ${who(d['userId'])}`,
  'message.send': (d) => (d['text'] === undefined ? 'files' : `“${cut(String(d['text']))}”`),
  ack: (d, { re }) =>
    `re ${String(re)}${d['seq'] === undefined ? '' : ` · seq ${String(d['seq'])} · committed`}`,
  error: (_, { code }) => String(code),
  receipt: marks,
  typing: (d) => [d['userId'] === undefined ? '' : who(d['userId']), d['state']].filter(Boolean).join(' '),
  presence: (d) => `${who(d['userId'])} ${d['online'] ? 'online' : 'offline'}`,
  read: (d) => `up to ${String(d['seq'])}`,
  delivered: (d) => `${count(d['items'])} ${count(d['items']) === 1 ? 'mark' : 'marks'}`,
  sync: () => 'what changed?',
  'presence.watch': (d) => people(count(d['userIds'])),
  closed: (_, { code, why }) => [String(code), why].filter(Boolean).join(', '),
};

export function aboutOf({ data }: Frame): string {
  const d = part(data['d']);
  if (data['e'] !== undefined) {
    const sender = part(d['message'])['senderId'] ?? d['userId'] ?? d['by'];
    return `seq ${String(data['seq'])}${sender === undefined ? '' : ` · ${who(sender)}`}`;
  }
  return about[String(data['t'])]?.(d, data) ?? '';
}

const two = (n: number): string => String(n).padStart(2, '0');
/** Seconds and milliseconds: the hour is the same. */
export function secondsOf(at: number): string {
  const date = new Date(at);
  return `${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}

/** A message on its way between two people. */
export interface Passage {
  key: string;
  from: 'a' | 'b';
  /** Null until the service has numbered it. */
  seq: number | null;
  /** The other one's socket has brought it. */
  heard: boolean;
}

const maxPassages = 6;

/** What both sockets tell about the messages of one conversation, in the order of the service. */
export function passagesOf(
  cid: string,
  a: { id: string; frames: readonly Frame[] },
  b: { id: string; frames: readonly Frame[] },
): Passage[] {
  const numbered = new Map<number, Passage>();
  const waiting = new Map<string, Passage>();
  /** How far each of them has heard, as receipts tell: also what came before this page was open. */
  const heardTo = { a: 0, b: 0 };
  for (const [side, mine] of [
    ['a', a],
    ['b', b],
  ] as const) {
    for (const { way, data } of mine.frames) {
      const d = part(data['d']);
      const clientMsgId = String(d['clientMsgId']);
      if (way === 'out' && data['t'] === 'message.send' && d['cid'] === cid)
        waiting.set(clientMsgId, { key: clientMsgId, from: side, seq: null, heard: false });
      else if (data['t'] === 'ack' && waiting.has(clientMsgId)) {
        const seq = Number(d['seq']);
        waiting.delete(clientMsgId);
        numbered.set(seq, { key: String(seq), from: side, seq, heard: numbered.get(seq)?.heard ?? false });
      } else if (data['t'] === 'receipt' && d['cid'] === cid) {
        const reader = d['userId'] === a.id ? 'a' : 'b';
        const seqs = [d['lastReadSeq'], d['lastDeliveredSeq']].map((seq) => Number(seq ?? 0));
        heardTo[reader] = Math.max(heardTo[reader], ...seqs);
      } else if (data['e'] === 'message.new' && data['cid'] === cid) {
        const seq = Number(data['seq']);
        const sender = part(d['message'])['senderId'];
        if (sender !== a.id && sender !== b.id) continue;
        const heard = sender !== mine.id || (numbered.get(seq)?.heard ?? false);
        numbered.set(seq, { key: String(seq), from: sender === a.id ? 'a' : 'b', seq, heard });
      }
    }
  }
  const inOrder = [...numbered.values()]
    .sort((x, y) => x.seq! - y.seq!)
    .map((one) => ({ ...one, heard: one.heard || heardTo[one.from === 'a' ? 'b' : 'a'] >= one.seq! }));
  return [...inOrder, ...waiting.values()].slice(-maxPassages);
}
