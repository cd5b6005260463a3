import type { WireFrame } from './wire.ts';

/** What a frame says, in a few words. */

type Data = Readonly<Record<string, unknown>>;
export type NameOf = (userId: string) => string;

const maxWords = 60;
const cut = (text: string): string => (text.length > maxWords ? `${text.slice(0, maxWords - 1)}…` : text);
export const part = (value: unknown): Data =>
  typeof value === 'object' && value !== null ? (value as Data) : {};
const count = (list: unknown): number => (Array.isArray(list) ? list.length : 0);
const plural = (n: number, one: string, other: string): string => `${n} ${n === 1 ? one : other}`;

export const typeOf = ({ data }: WireFrame): string => String(data['e'] ?? data['t'] ?? '?');

/** Frames that say little: they are shown quietly. */
const quiet = new Set(['hb', 'sync', 'ack', 'delivered', 'presence.watch', 'call.stats', 'call.speakers']);
export const isQuiet = (frame: WireFrame): boolean => quiet.has(typeOf(frame));

interface Told {
  d: Data;
  frame: Data;
  who: (id: unknown) => string;
  reveal: boolean;
}
const about: Record<string, (told: Told) => string> = {
  auth: () => 'with a token',
  hello: ({ d, who }) => `you are ${who(d['userId'])}`,
  'message.send': ({ d, reveal }) => {
    if (d['text'] === undefined) return 'files';
    const text = String(d['text']);
    return reveal ? `“${cut(text)}”` : plural(text.length, 'character', 'characters');
  },
  ack: ({ d, frame }) =>
    `re ${String(frame['re'])}${d['seq'] === undefined ? '' : ` · seq ${String(d['seq'])} · committed`}`,
  error: ({ frame }) => String(frame['code']),
  receipt: ({ d, who }) =>
    d['lastReadSeq'] === undefined
      ? `${who(d['userId'])} has up to ${String(d['lastDeliveredSeq'])}`
      : `${who(d['userId'])} read up to ${String(d['lastReadSeq'])}`,
  typing: ({ d, who }) =>
    [d['userId'] === undefined ? '' : who(d['userId']), d['state']].filter(Boolean).join(' '),
  presence: ({ d, who }) => `${who(d['userId'])} ${d['online'] ? 'online' : 'offline'}`,
  read: ({ d }) => `up to ${String(d['seq'])}`,
  delivered: ({ d }) => plural(count(d['items']), 'mark', 'marks'),
  sync: () => 'what changed?',
  'presence.watch': ({ d }) => plural(count(d['userIds']), 'person', 'people'),
  closed: ({ frame }) => [String(frame['code']), frame['why']].filter(Boolean).join(', '),
};

export function aboutOf({ data }: WireFrame, nameOf: NameOf, reveal: boolean): string {
  const d = part(data['d']);
  const who = (id: unknown): string => (typeof id === 'string' ? nameOf(id) : 'somebody');
  if (data['e'] !== undefined) {
    const sender = part(d['message'])['senderId'] ?? d['userId'] ?? d['by'];
    return `seq ${String(data['seq'])}${sender === undefined ? '' : ` · ${who(sender)}`}`;
  }
  return about[String(data['t'])]?.({ d, frame: data, who, reveal }) ?? '';
}

/** Texts that say where a frame belongs, and nothing that people wrote or are called. */
const open = new Set(
  'actorId by callId cid clientMsgId code conversationId createdAt e editedAt deletedAt id kind lastSeenAt mimeType re replyTo role senderId sessionId source state status t type userId userIds'.split(
    ' ',
  ),
);
const maxText = 4_000;

/** The frame as text. Unless revealed, it has its shape, its ids and its numbers; words of people are "…". */
export function textOf({ data }: WireFrame, reveal: boolean): string {
  const hide = (value: unknown, key: string): unknown => {
    if (typeof value === 'string') return open.has(key) ? value : '…';
    if (Array.isArray(value)) return value.map((one) => hide(one, key));
    if (typeof value !== 'object' || value === null) return value;
    if (key === 'metadata') return '…';
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, hide(one, name)]));
  };
  const text = JSON.stringify(reveal ? data : hide(data, ''), null, 2);
  return text.length > maxText ? `${text.slice(0, maxText)}…` : text;
}

const two = (n: number): string => String(n).padStart(2, '0');
/** Seconds and milliseconds: the hour is the same. */
export function secondsOf(at: number): string {
  const date = new Date(at);
  return `${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}
