import type { CallOptions } from '../http.ts';
import type { MessageItem } from '../state/message-item.ts';
import { Value } from '../store.ts';

/** The users whom this user blocks. The list loads at its first use, or when it may have changed. */

export interface BlocksHost {
  /** Throws `feature_disabled` if the environment has it off. */
  check(feature: string): void;
  http<T>(method: string, path: string, options?: CallOptions): Promise<T>;
  /** Other messages are marked from now on. */
  changed(): void;
}

interface BlocksPage {
  data: { userId: string }[];
  nextCursor: string | null;
}

/** A user blocks at most 1,000 others: five pages. */
const maxPages = 10;
const path = (userId: string): string => `/blocks/${encodeURIComponent(userId)}`;

export type BlocksFeature = ReturnType<typeof bindBlocks>;

export function bindBlocks(host: BlocksHost) {
  const store = new Value<readonly string[]>([]);
  let known = new Set<string>();
  /** What the user wants and the server has not answered yet. */
  const wanted = new Map<string, boolean>();
  /** What was changed here while the list was loading; null if it is not. */
  let told: Map<string, boolean> | null = null;
  let last: Promise<unknown> = Promise.resolve();

  let shown = new Set<string>();
  const marks = new WeakMap<MessageItem, MessageItem>();

  function show(): void {
    shown = new Set(known);
    for (const [id, on] of wanted)
      if (on) shown.add(id);
      else shown.delete(id);
    store.set([...shown]);
    host.changed();
  }

  function set(userId: string, on: boolean): void {
    if (on) known.add(userId);
    else known.delete(userId);
    told?.set(userId, on);
  }

  /** Shows it at once; a refusal takes it back, and rejects. One change follows the other, so that the last one wins. */
  async function change(userId: string, on: boolean): Promise<void> {
    host.check('blocks');
    wanted.set(userId, on);
    show();
    const run = last.then(() => host.http<void>(on ? 'PUT' : 'DELETE', path(userId), on ? { body: {} } : {}));
    last = run.catch(() => {});
    try {
      await run;
      set(userId, on);
    } finally {
      if (wanted.get(userId) === on) wanted.delete(userId);
      show();
    }
  }

  return {
    get: store.get,
    subscribe: store.subscribe,
    has: (userId: string | null): boolean => userId !== null && shown.has(userId),
    add: (userId: string) => change(userId, true),
    remove: (userId: string) => change(userId, false),

    async load(): Promise<void> {
      const since = (told = new Map<string, boolean>());
      const ids: string[] = [];
      let cursor: string | null = null;
      for (let page = 0; page < maxPages; page++) {
        const { data, nextCursor }: BlocksPage = await host.http('GET', '/blocks', {
          query: { limit: 200, cursor: cursor ?? undefined },
        });
        ids.push(...data.map(({ userId }) => userId));
        cursor = nextCursor;
        if (cursor === null) break;
      }
      // A later load has begun meanwhile, and knows more.
      if (told !== since) return;
      known = new Set(ids);
      told = null;
      for (const [id, on] of since) set(id, on);
      show();
    },

    /** The message with the mark, if its sender is blocked; the same object as long as nothing changed. */
    mark(item: MessageItem): MessageItem {
      if (item.senderId === null || !shown.has(item.senderId)) return item;
      let marked = marks.get(item);
      if (!marked) marks.set(item, (marked = { ...item, blocked: true }));
      return marked;
    },
  };
}
