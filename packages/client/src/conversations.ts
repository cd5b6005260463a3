import type { Api, NewConversation } from './api.ts';
import type { DiscoverPage } from './features/joining.ts';
import { asError } from './errors.ts';
import type { Draft } from './outbox/storage.ts';
import type { ConversationList, ConversationListSnapshot } from './state/conversation-list.ts';
import type { ConversationHandle } from './state/conversation.ts';
import type { MessageItem } from './state/message-item.ts';
import type { Store } from './store.ts';

export interface ConversationsOptions {
  api: Api;
  list: ConversationList;
  open(cid: string): ConversationHandle;
  markRead(cid: string, seq?: number): void;
  send(cid: string, draft: string | Draft): MessageItem;
  /** After a failure, which emits an error, the request is repeated later. */
  soon(failure?: unknown): void;
}

const maxPages = 4;

/** The user's conversations, sorted by last activity. */
export class Conversations implements Store<ConversationListSnapshot> {
  get: () => ConversationListSnapshot;
  subscribe: (listener: () => void) => () => void;
  /** Sends a message without opening the conversation. */
  send: (conversationId: string, draft: string | Draft) => MessageItem;
  markRead: (conversationId: string, seq?: number) => void;
  /** Opens a conversation, or returns its handle if it is open. The handle follows the conversation until `close`. */
  open: (conversationId: string) => ConversationHandle;
  #o: ConversationsOptions;
  #loaded = false;
  #more: Promise<void> | null = null;

  constructor(options: ConversationsOptions) {
    this.#o = options;
    this.get = options.list.store.get;
    this.subscribe = options.list.store.subscribe;
    this.send = options.send;
    this.markRead = options.markRead;
    this.open = options.open;
  }

  /** Opens the conversation that was created, or the existing one. `close` the handle as if `open` had returned it. */
  create = async (body: NewConversation): Promise<ConversationHandle> =>
    this.enter((await this.#o.api.createConversation(body)).id);
  /** @internal Opens one that the list may not know yet. */
  enter = (id: string): ConversationHandle => {
    if (!this.#o.list.item(id)) {
      this.#o.list.markStale(id);
      this.#o.soon();
    }
    return this.open(id);
  };
  /** Joins a group whose rule `joining` is `open`, and opens it. `close` the handle as if `open` had returned it. */
  declare join: (conversationId: string) => Promise<ConversationHandle>;
  /** Listed groups: all, or those with these words in their name; the last word may be the beginning of one. */
  declare discover: (q?: string, cursor?: string) => Promise<DiscoverPage>;
  createDirect = (userId: string): Promise<ConversationHandle> =>
    this.create({ type: 'direct', members: [userId] });
  createGroup = (
    members: string[],
    rest: Omit<NewConversation, 'type' | 'members'> = {},
  ): Promise<ConversationHandle> => this.create({ type: 'group', members, ...rest });

  /** Loads the next page, or the first one if it could not be loaded yet. */
  loadMore = (): Promise<void> => {
    const cursor = this.#o.list.nextCursor;
    if (!this.#loaded) return this.refresh();
    if (cursor === null) return Promise.resolve();
    return (this.#more ??= this.#page(cursor, true).then(
      () => void (this.#more = null),
      (e: unknown) => {
        this.#more = null;
        throw e;
      },
    ));
  };

  /** @internal Loads the first page once, then as many pages as it takes to find all stale conversations. */
  async refresh(): Promise<void> {
    const { list } = this.#o;
    if (this.#loaded && list.stale.size === 0) return;
    const wanted = [...list.stale.keys()];
    const started = list.begin();
    const first = !this.#loaded;
    let cursor: string | null = null;
    try {
      for (let page = 0; page < maxPages; page++) {
        cursor = await this.#page(cursor, first);
        this.#loaded = true;
        if (first || cursor === null || !wanted.some((id) => list.stale.has(id))) break;
      }
    } catch (e) {
      if (first) {
        list.error = asError(e);
        list.store.touch();
      }
      this.#o.soon(e);
      throw e;
    }
    // These are further down than the user has scrolled: their page will bring them.
    for (const id of wanted) if (!list.item(id)) list.fresh(id, started);
  }

  /** @internal */
  reset(loaded = false): void {
    this.#loaded = loaded;
  }

  async #page(cursor: string | null, extend: boolean): Promise<string | null> {
    const { api, list } = this.#o;
    const started = list.begin();
    const { data, nextCursor } = await api.conversations(cursor ?? undefined);
    if (extend) list.nextCursor = nextCursor;
    list.error = undefined;
    list.applyPage(data, started);
    return nextCursor;
  }
}
