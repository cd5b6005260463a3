import type { Clock } from '../clock.ts';
import { asError, ParleyError } from '../errors.ts';
import type { CallOptions } from '../http.ts';
import { serverItem } from '../state/message-item.ts';
import type { MessageItem } from '../state/message-item.ts';
import { isTombstone, MessageWindow } from '../state/message-window.ts';
import type { Applied, ToldPin } from '../state/told.ts';
import { Value } from '../store.ts';
import type { Store } from '../store.ts';
import type { Message, MessageOrTombstone } from '../types.ts';
import { changeMessage } from './changes.ts';

/** Pinned messages of an open conversation; it is loaded when somebody first uses them. */

export interface PinsHost {
  /** Of the conversation. */
  id: string;
  clock: Clock;
  /** Those that are on; null before the first `hello`. */
  features(): readonly string[] | null;
  /** Throws `feature_disabled` if the environment has it off. */
  check(feature: string): void;
  me(): string | null;
  http<T>(method: string, path: string, options?: CallOptions): Promise<T>;
  /** A message of the conversation's window. */
  find(messageId: string): MessageOrTombstone | undefined;
  /** The answer of the server, for the conversation's window. */
  told(pin: ToldPin): void;
  /** What is shown of the conversation has changed. */
  changed(): void;
}

export interface PinsSnapshot {
  /** The newest pin first. */
  items: readonly MessageItem[];
  status: 'loading' | 'ready';
}

interface Intention {
  id: string;
  on: boolean;
  at: string;
  /** The stream had an event that may be newer than the answer. */
  overtaken: boolean;
}

/** How many may wait for their answer. */
const maxWaiting = 100;

export type PinsFeature = ReturnType<typeof bindPins>;

export function bindPins(host: PinsHost) {
  const store = new Value<PinsSnapshot>({ items: [], status: 'loading' });
  /** The pinned messages, with some that no longer are. It follows the stream as the conversation's window does. */
  const list = new MessageWindow(host.me, () => {});
  list.use(changeMessage);
  const views = new WeakMap<MessageOrTombstone, MessageItem>();
  const optimistic = new Map<string, { item: MessageItem; mine: Intention; view: MessageItem }>();
  /** All that the server has not answered yet. */
  const asked = new Set<Intention>();
  /** The last request of each message: the next one waits for it, so that the last intention wins. */
  const tails = new Map<string, Promise<unknown>>();
  let following = false;
  let ready = false;
  let stale = true;
  let loading = false;

  const isOff = (): boolean => host.features()?.includes('pins') === false;
  /** The last intention for a message. */
  const wanted = (id: string): Intention | undefined => [...asked].reverse().find((one) => one.id === id);

  function viewOf(message: MessageOrTombstone): MessageItem {
    let view = views.get(message);
    if (!view) views.set(message, (view = serverItem(message, undefined)));
    return show(view);
  }

  /** The message as the user wants it; the same object as long as nothing changed. */
  function show(item: MessageItem): MessageItem {
    const mine = item.id === null || asked.size === 0 ? undefined : wanted(item.id);
    if (!mine || item.deletedAt !== null || mine.on === (item.pinned !== undefined)) return item;
    const known = optimistic.get(mine.id);
    if (known?.item === item && known.mine === mine) return known.view;
    const { pinned: _, ...rest } = item;
    const view = mine.on ? { ...rest, pinned: { at: mine.at, by: host.me() } } : rest;
    optimistic.set(mine.id, { item, mine, view });
    return view;
  }

  function changed(): void {
    host.changed();
    if (!following) return;
    const items = new Map(list.items.map((m) => [m.id, viewOf(m)]));
    for (const { id } of asked) {
      const message = items.has(id) ? undefined : host.find(id);
      if (message) items.set(id, viewOf(message));
    }
    const pinned = [...items.values()].filter((item) => item.pinned);
    pinned.sort((a, b) =>
      a.pinned!.at === b.pinned!.at ? b.seq! - a.seq! : a.pinned!.at < b.pinned!.at ? 1 : -1,
    );
    store.set({ items: pinned, status: ready ? 'ready' : 'loading' });
  }

  async function load(): Promise<void> {
    while (following && stale && !loading) {
      stale = false;
      loading = true;
      const finish = list.load();
      try {
        const path = `/conversations/${encodeURIComponent(host.id)}/pins`;
        const { data } = isOff() ? { data: [] } : await host.http<{ data: Message[] }>('GET', path);
        finish(() => list.replace(data, false, true), true);
        ready = true;
      } catch (e) {
        finish(null);
        // The next progress of the conversation tries again.
        if (asError(e).code === 'feature_disabled') ready = true;
        else return void (stale = true);
      } finally {
        loading = false;
      }
      changed();
    }
  }

  function apply(event: Applied): void {
    if (!following) return;
    const before = list.items;
    if (event.e === 'message.pinned' && event.d.pinned && !before.some((m) => m.id === event.d.id)) {
      const message = host.find(event.d.id);
      if (message && !isTombstone(message))
        list.items = [...before.filter((m) => m.pinnedAt !== undefined), message];
      // A page that is under way may lack it.
      if (!message || loading) stale = true;
    }
    if (!list.apply(event)) stale = true;
    if (list.items !== before) changed();
    void load();
  }

  return {
    show,

    /** The list, which is loaded and kept from now on. */
    follow(): Store<PinsSnapshot> {
      following = true;
      void load();
      return store;
    },

    /** Something that was applied to the conversation's window. */
    event(event: Applied): void {
      if (event.e === 'message.pinned')
        for (const one of asked) if (one.id === event.d.id) one.overtaken = true;
      apply(event);
    },

    /** The stream was interrupted and continued further on. */
    missed(): void {
      for (const one of asked) one.overtaken = true;
      stale = true;
    },

    retry(): void {
      void load();
    },

    /** Shows at once; a refusal takes it back, and rejects. */
    async set(id: string, on: boolean): Promise<void> {
      host.check('pins');
      if (asked.size >= maxWaiting) throw new ParleyError('rate_limited', 'Too many pins at once.');
      const mine = { id, on, at: new Date(host.clock.now()).toISOString(), overtaken: false };
      const run = Promise.resolve(tails.get(id))
        .catch(() => {})
        .then(() =>
          host.http<{ pinnedAt: string; pinnedBy: string | null } | undefined>(
            on ? 'PUT' : 'DELETE',
            `/messages/${encodeURIComponent(id)}/pin`,
          ),
        );
      tails.set(id, run);
      asked.add(mine);
      changed();
      try {
        const { pinnedAt = mine.at, pinnedBy = null } = (await run) ?? {};
        if (mine.overtaken) return;
        const told = { e: 'message.pinned', d: { id, pinned: on, at: pinnedAt, actorId: pinnedBy } } as const;
        host.told(told);
        apply(told);
      } finally {
        if (tails.get(id) === run) tails.delete(id);
        asked.delete(mine);
        if (!wanted(id)) optimistic.delete(id);
        changed();
      }
    },
  };
}
