import type { CallOptions } from '../http.ts';
import { isTombstone } from '../state/message-window.ts';
import { Value } from '../store.ts';
import type { Store } from '../store.ts';
import type { Message, MessageOrTombstone, SocketEvents } from '../types.ts';

/** The messages that name this user; it is loaded when somebody first asks for them. */

export interface MentionsSnapshot {
  /** Messages that name this user, newest first. */
  items: readonly Message[];
  hasMore: boolean;
  status: 'loading' | 'ready';
}

type Heard = {
  [Type in keyof SocketEvents]: { conversationId: string; type: Type; data: SocketEvents[Type] };
}[keyof SocketEvents];

/** Those of the client's events that matter here. */
interface Happening {
  event: Heard;
  state: { state: string };
}

export interface MentionsHost {
  /** Throws `feature_disabled` if the environment has it off. */
  check(feature: string): void;
  /** Whether the user blocks this one: its messages mention nobody. */
  isBlocked(userId: string | null): boolean;
  me(): string | null;
  http<T>(method: string, path: string, options?: CallOptions): Promise<T>;
  on<K extends keyof Happening>(name: K, fn: (value: Happening[K]) => void): unknown;
}

/** The messages of all conversations that mention this user. The first subscription loads them. */
export interface Mentions extends Store<MentionsSnapshot> {
  /** Loads the newest ones again; what was shown before goes. */
  load(): Promise<void>;
  /** Loads the next page, if there is one. */
  loadMore(): Promise<void>;
}

interface Page {
  data: Message[];
  nextCursor: string | null;
}

const maxItems = 1_000;

export function bindMentions(host: MentionsHost): Mentions {
  const store = new Value<MentionsSnapshot>({ items: [], hasMore: false, status: 'loading' });
  let first: Promise<void> | null = null;
  let cursor: string | null = null;
  let more: Promise<void> | null = null;
  let asked = 0;
  /** What happened while a page was on its way, which may be older. */
  let missed: (() => void)[] | null = null;

  const show = (items: readonly Message[]): void =>
    store.set({ items: items.slice(0, maxItems), hasMore: cursor !== null, status: 'ready' });
  const without = (fits: (m: Message) => boolean): void => {
    const { items } = store.get();
    if (items.some(fits)) show(items.filter((m) => !fits(m)));
  };
  const names = ({ senderId, mentions }: MessageOrTombstone): boolean =>
    !host.isBlocked(senderId) && !!mentions?.some(({ userId }) => userId === host.me());

  function put(message: MessageOrTombstone): void {
    const { items } = store.get();
    const known = items.find((m) => m.id === message.id);
    if (isTombstone(message) || !names(message)) return without((m) => m.id === message.id);
    if (known) {
      // Events do not contain reactions.
      const kept = known.reactions ? { ...message, reactions: known.reactions } : message;
      if (message.version >= known.version) show(items.map((m) => (m === known ? kept : m)));
      return;
    }
    // The next page has the messages that are older than the shown ones.
    const last = items.at(-1);
    if (cursor !== null && last && message.createdAt < last.createdAt) return;
    show([...items, message].sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1)));
  }

  function apply(event: Heard): void {
    switch (event.type) {
      case 'message.new':
      case 'message.updated':
        return put(event.data.message);
      case 'message.deleted':
        return without((m) => m.id === event.data.id);
      case 'member.removed':
        if (event.data.userId !== host.me()) return;
        return without((m) => m.conversationId === event.conversationId);
      case 'conversation.deleted':
        return without((m) => m.conversationId === event.conversationId);
      default: // It is not about a mention.
    }
  }

  async function page(after: string | null, take: (page: Page) => void): Promise<void> {
    host.check('mentions');
    const mine = ++asked;
    missed = [];
    const found = await host.http<Page>(
      'GET',
      '/mentions',
      after === null ? {} : { query: { cursor: after } },
    );
    if (mine !== asked) return;
    const later = missed;
    missed = null;
    cursor = found.nextCursor;
    take(found);
    for (const again of later) again();
  }

  host.on('event', (event) => {
    apply(event);
    missed?.push(() => apply(event));
  });
  // What was missed while disconnected is in the first page.
  host.on('state', ({ state }) => {
    if (state === 'connected' && store.get().status === 'ready') load().catch(() => {});
  });

  const load = (): Promise<void> => page(null, ({ data }) => show(data));
  return {
    get: store.get,
    subscribe(listener) {
      first ??= load().catch(() => void (first = null));
      return store.subscribe(listener);
    },
    load,
    loadMore(): Promise<void> {
      if (cursor === null) return Promise.resolve();
      return (more ??= page(cursor, ({ data }) => {
        const known = new Set(store.get().items.map((m) => m.id));
        show([...store.get().items, ...data.filter((m) => !known.has(m.id))]);
      }).finally(() => (more = null)));
    },
  };
}
