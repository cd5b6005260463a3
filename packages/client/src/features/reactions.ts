import { ParleyError } from '../errors.ts';
import type { CallOptions } from '../http.ts';
import type { MessageItem } from '../state/message-item.ts';
import type { Reaction, Reactions } from '../types.ts';

/** Reactions of an open conversation; it is loaded when somebody first uses them. */

export interface ReactionsHost {
  /** Those that are on; null before the first `hello`. */
  features(): readonly string[] | null;
  me(): string | null;
  http<T>(method: string, path: string, options?: CallOptions): Promise<T>;
  /** The answer of the server. */
  told(messageId: string, reactions: Reactions): void;
  /** What is shown of the conversation has changed. */
  changed(): void;
}

export interface ReactorsPage {
  /** Newest first. */
  data: Reaction[];
  nextCursor: string | null;
}

interface Intention {
  emoji: string;
  on: boolean;
}

/** How many may wait for their answer, of one message. */
const maxWaiting = 20;
const nothing: Reactions = { revision: 0, total: 0, counts: [], own: [] };
const path = (id: string, emoji?: string): string =>
  `/messages/${encodeURIComponent(id)}/reactions${emoji === undefined ? '' : `/${encodeURIComponent(emoji)}`}`;

export type ReactionsFeature = ReturnType<typeof bindReactions>;

export function bindReactions(host: ReactionsHost) {
  /** What the user wants and the server has not answered yet, by message. */
  const waiting = new Map<string, readonly Intention[]>();
  /** The last request of each message: the next one waits for it, so that the last intention wins. */
  const tails = new Map<string, Promise<unknown>>();
  const shown = new Map<string, { item: MessageItem; wanted: readonly Intention[]; view: MessageItem }>();

  function check(): void {
    if (host.features()?.includes('reactions') === false)
      throw new ParleyError('feature_disabled', 'Reactions are off in this environment.');
  }

  function want(id: string, wanted: readonly Intention[]): void {
    if (wanted.length > 0) waiting.set(id, wanted);
    else waiting.delete(id);
    if (wanted.length === 0) shown.delete(id);
    host.changed();
  }

  return {
    /** Shows it at once; a refusal takes it back, and rejects. */
    async set(id: string, emoji: string, on: boolean): Promise<Reactions> {
      check();
      const before = waiting.get(id) ?? [];
      if (before.length >= maxWaiting) throw new ParleyError('rate_limited', 'Too many reactions at once.');
      const mine: Intention = { emoji, on };
      const run = Promise.resolve(tails.get(id))
        .catch(() => {})
        .then(() =>
          host.http<{ reactions: Reactions }>(on ? 'PUT' : 'DELETE', path(id, emoji), on ? { body: {} } : {}),
        );
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
    },

    /** Who reacted, newest first, page by page. */
    async list(id: string, emoji?: string, cursor?: string): Promise<ReactorsPage> {
      check();
      return host.http<ReactorsPage>('GET', path(id), { query: { emoji, cursor } });
    },

    /** The message with what the user wants; the same object as long as nothing changed. */
    show(item: MessageItem): MessageItem {
      const wanted = item.id === null ? undefined : waiting.get(item.id);
      if (!wanted || item.deletedAt !== null) return item;
      const known = shown.get(item.id!);
      if (known?.item === item && known.wanted === wanted) return known.view;
      const view = { ...item, reactions: wanted.reduce(after(host.me()), item.reactions ?? nothing) };
      shown.set(item.id!, { item, wanted, view });
      return view;
    },
  };
}

/** Reactions after the user's intention came true. */
const after =
  (me: string | null) =>
  (reactions: Reactions, { emoji, on }: Intention): Reactions => {
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
  };
