import { ParleyError } from '../errors.ts';
import type { CallOptions } from '../http.ts';
import type { MessageItem } from '../state/message-item.ts';
import type { Message, Poll, Reaction, Reactions } from '../types.ts';

/** Reactions and votes of an open conversation; it is loaded when somebody first uses them. */

export interface ReactionsHost {
  /** Throws `feature_disabled` if the environment has it off. */
  check(feature: string): void;
  me(): string | null;
  http<T>(method: string, path: string, options?: CallOptions): Promise<T>;
  /** The answer of the server. */
  told(messageId: string, reactions: Reactions): void;
  /** A poll was closed. */
  closed(messageId: string, poll: Poll): void;
  /** What is shown of the conversation has changed. */
  changed(): void;
}

export interface ReactorsPage {
  /** Newest first. */
  data: Reaction[];
  nextCursor: string | null;
}

/** An emoji, or all options that one votes for. */
type Intention = { emoji: string; on: boolean } | { votes: readonly number[] };

/** How many may wait for their answer, of one message. */
const maxWaiting = 20;
const nothing: Reactions = { revision: 0, total: 0, counts: [], own: [] };
const of = (id: string): string => `/messages/${encodeURIComponent(id)}`;
const path = (id: string, emoji?: string): string =>
  `${of(id)}/reactions${emoji === undefined ? '' : `/${encodeURIComponent(emoji)}`}`;

export type ReactionsFeature = ReturnType<typeof bindReactions>;

export function bindReactions(host: ReactionsHost) {
  /** What the user wants and the server has not answered yet, by message. */
  const waiting = new Map<string, readonly Intention[]>();
  /** The last request of each message: the next one waits for it, so that the last intention wins. */
  const tails = new Map<string, Promise<unknown>>();
  const shown = new Map<string, { item: MessageItem; wanted: readonly Intention[]; view: MessageItem }>();

  function want(id: string, wanted: readonly Intention[]): void {
    if (wanted.length > 0) waiting.set(id, wanted);
    else waiting.delete(id);
    if (wanted.length === 0) shown.delete(id);
    host.changed();
  }

  /** Shows it at once; a refusal takes it back, and rejects. */
  async function ask(id: string, mine: Intention, ...args: Parameters<typeof host.http>): Promise<Reactions> {
    const before = waiting.get(id) ?? [];
    if (before.length >= maxWaiting) throw new ParleyError('rate_limited', 'Too many reactions at once.');
    const run = Promise.resolve(tails.get(id))
      .catch(() => {})
      .then(() => host.http<{ reactions: Reactions }>(...args));
    tails.set(id, run);
    want(id, [...before, mine]);
    try {
      const { reactions } = await run;
      host.told(id, reactions);
      return reactions;
    } finally {
      if (tails.get(id) === run) tails.delete(id);
      want(
        id,
        (waiting.get(id) ?? []).filter((one) => one !== mine),
      );
    }
  }

  return {
    async set(id: string, emoji: string, on: boolean): Promise<Reactions> {
      host.check('reactions');
      return ask(id, { emoji, on }, on ? 'PUT' : 'DELETE', path(id, emoji), on ? { body: {} } : {});
    },

    async vote(id: string, votes: readonly number[]): Promise<Reactions> {
      host.check('polls');
      return ask(id, { votes }, 'PUT', `${of(id)}/votes`, { body: { options: votes } });
    },

    async close(id: string): Promise<Poll> {
      host.check('polls');
      const { poll } = await host.http<Message>('POST', `${of(id)}/poll/close`);
      host.closed(id, poll!);
      return poll!;
    },

    /** The users who reacted, newest first, page by page. */
    async list(id: string, emoji?: string, cursor?: string): Promise<ReactorsPage> {
      host.check('reactions');
      return host.http<ReactorsPage>('GET', path(id), { query: { emoji, cursor } });
    },

    /** The message with what the user wants; the same object as long as nothing changed. */
    show(item: MessageItem): MessageItem {
      const wanted = item.id === null ? undefined : waiting.get(item.id);
      if (!wanted || item.deletedAt !== null) return item;
      const known = shown.get(item.id!);
      if (known?.item === item && known.wanted === wanted) return known.view;
      const me = item.poll?.anonymous ? null : host.me();
      const reactions = wanted.reduce(
        (now, one) => ('votes' in one ? voted(now, one.votes, me) : reacted(now, one, host.me())),
        item.reactions ?? nothing,
      );
      const view = { ...item, reactions };
      shown.set(item.id!, { item, wanted, view });
      return view;
    },
  };
}

/** Reactions after the user's intention came true. */
function reacted(
  reactions: Reactions,
  { emoji, on }: { emoji: string; on: boolean },
  me: string | null,
): Reactions {
  const own = reactions.own ?? [];
  if (own.includes(emoji) === on) return reactions;
  const by = on ? 1 : -1;
  const there = reactions.counts.some((c) => c.emoji === emoji);
  const counts = reactions.counts
    .map((c) => (c.emoji === emoji ? { ...c, count: c.count + by } : c))
    .filter((c) => c.count > 0);
  if (on && !there) counts.push({ emoji, count: 1, userIds: me === null ? [] : [me] });
  return {
    ...reactions,
    total: reactions.total + by,
    counts,
    own: on ? [...own, emoji] : own.filter((e) => e !== emoji),
  };
}

/** Votes after the user's came true. @param me null if the poll is anonymous. */
function voted(reactions: Reactions, wanted: readonly number[], me: string | null): Reactions {
  const { votes = [], ownVotes = [] } = reactions;
  const by = (option: number): number => +wanted.includes(option) - +ownVotes.includes(option);
  const fresh = wanted
    .filter((option) => !votes.some((v) => v.option === option))
    .map((option) => ({ option, count: 1, userIds: me === null ? [] : [me] }));
  return {
    ...reactions,
    votes: [...votes.map((v) => ({ ...v, count: v.count + by(v.option) })), ...fresh]
      .filter((v) => v.count > 0)
      .sort((a, b) => a.option - b.option),
    ownVotes: [...wanted].sort((a, b) => a - b),
  };
}
