import type {
  EventFrame,
  Message,
  MessageOrTombstone,
  Reactions,
  SocketEvents,
  Tombstone,
} from '../types.ts';

/** Reactions as an event, an ack or one's own devices tell them. */
export type ToldReactions = { id: string; revision: number } & Partial<
  Reactions & Pick<SocketEvents['message.reactions'], 'changes' | 'more'>
>;
/** What changes messages: events of the stream, and what only this user is told. */
export type Applied = EventFrame | { e: 'reaction.own'; d: ToldReactions };

const maxItems = 1_000;
const maxLog = 2_000;

export const isTombstone = (m: MessageOrTombstone): m is Tombstone => m.deletedAt != null;

/** A deleted message looks the same whether an event or a page reported it. */
const normal = (m: MessageOrTombstone): MessageOrTombstone =>
  isTombstone(m)
    ? {
        id: m.id,
        conversationId: m.conversationId,
        seq: m.seq,
        senderId: m.senderId,
        text: null,
        attachments: [],
        createdAt: m.createdAt,
        deletedAt: m.deletedAt,
      }
    : m;

const isNewer = (a: MessageOrTombstone, b: MessageOrTombstone): boolean =>
  !isTombstone(b) && (isTombstone(a) || (a as Message).version > b.version);

/**
 * A contiguous range of a conversation's messages, in ascending seq. Applying an event twice, or one that a page has
 * already shown, changes nothing. Events that arrive while a page is being loaded are also applied to that page,
 * because it may be older than they are.
 */
export class MessageWindow {
  items: MessageOrTombstone[] = [];
  hasOlder = false;
  hasNewer = false;
  #loads = 0;
  #generation = 0;
  #log: Applied[] = [];
  /** The revision at which one's own were as they are, if it is not that of the counts. */
  #ownAt = new WeakMap<Reactions, number>();
  #me: () => string | null;

  constructor(me: () => string | null) {
    this.#me = me;
  }

  /**
   * Begins a page request. The returned function takes what to do with the page (null if the request failed). It does
   * nothing if the window was replaced meanwhile, unless forced.
   */
  load(): (merge: (() => void) | null, force?: boolean) => void {
    this.#loads++;
    const from = this.#log.length;
    const generation = this.#generation;
    return (merge, force = false) => {
      this.#loads--;
      if (merge && (force || generation === this.#generation)) {
        merge();
        for (const event of this.#log.slice(from)) this.#apply(event);
      }
      if (this.#loads === 0) this.#log = [];
    };
  }

  /** Pages are in descending seq, as the server sends them. */
  replace(page: MessageOrTombstone[], hasOlder: boolean, hasNewer: boolean): void {
    this.#generation++;
    this.items = page.map(normal).reverse();
    this.hasOlder = hasOlder;
    this.hasNewer = hasNewer;
  }

  prepend(page: MessageOrTombstone[], hasMore: boolean): void {
    const first = this.items[0]?.seq ?? Infinity;
    const older = page.filter((m) => m.seq < first).map(normal);
    this.items = [...older.reverse(), ...this.items];
    this.hasOlder = hasMore;
    if (this.items.length > maxItems) {
      this.items = this.items.slice(0, maxItems);
      this.hasNewer = true;
    }
  }

  append(page: MessageOrTombstone[], hasMore: boolean): void {
    const last = this.items.at(-1)?.seq ?? -1;
    const newer = page.filter((m) => m.seq > last).map(normal);
    this.items = [...this.items, ...newer.reverse()];
    this.hasNewer = hasMore;
    this.#trimOlder();
  }

  /** Returns false if too many events arrived during a page request, so that the latest page must be loaded again. */
  apply(event: Applied): boolean {
    if (this.#loads > 0 && this.#log.push(event) > maxLog) return false;
    this.#apply(event);
    return true;
  }

  /** Takes over a newer copy of a message, from the answer of a call. */
  upsert(message: MessageOrTombstone): void {
    const at = this.#find(message.id);
    if (at >= 0 && isNewer(message, this.items[at]!)) this.#set(at, normal(message));
  }

  /** The copy of a message in an event has no reactions: those that are known stay. */
  #set(at: number, message: MessageOrTombstone): void {
    const { reactions } = this.items[at]!;
    const kept =
      reactions && !isTombstone(message) && !message.reactions ? { ...message, reactions } : message;
    this.items = this.items.map((m, i) => (i === at ? kept : m));
  }

  /** Counts and one's own are told apart: of each the newer one stays. An event that tells every change tells one's own too. */
  #react({ id, revision, total, counts, changes, more, own }: ToldReactions): void {
    const at = this.#find(id);
    const message = this.items[at];
    if (!message || isTombstone(message)) return;
    const known = message.reactions ?? { revision: -1, total: 0, counts: [], own: [] };
    const ownAt = this.#ownAt.get(known) ?? known.revision;
    const me = this.#me();
    if (!own && !more)
      own = changes?.reduce<string[]>(
        (mine, { userId, emoji, on }) =>
          userId === me ? [...mine.filter((e) => e !== emoji), ...(on ? [emoji] : [])] : mine,
        known.own ?? [],
      );
    const hasOwn = own && revision >= ownAt;
    const reactions = {
      ...known,
      ...(counts && revision > known.revision ? { revision, total: total!, counts } : {}),
      ...(hasOwn ? { own } : {}),
    };
    this.#ownAt.set(reactions, hasOwn ? revision : ownAt);
    this.#set(at, { ...message, reactions });
  }

  #apply(event: Applied): void {
    switch (event.e) {
      case 'message.reactions':
      case 'reaction.own':
        return this.#react(event.d);
      case 'message.new': {
        const { message } = event.d;
        const last = this.items.at(-1)?.seq ?? -1;
        if (message.seq > last && !this.hasNewer) {
          this.items = [...this.items, normal(message)];
          this.#trimOlder();
        } else this.upsert(message);
        return;
      }
      case 'message.updated':
        return this.upsert(event.d.message);
      case 'message.deleted': {
        const at = this.#find(event.d.id);
        if (at < 0) return;
        if (event.d.hard) this.items = this.items.filter((_, i) => i !== at);
        else this.upsert({ ...(this.items[at] as Tombstone), deletedAt: event.d.deletedAt });
        return;
      }
      default: // The event is not about a message.
    }
  }

  #trimOlder(): void {
    if (this.items.length <= maxItems) return;
    this.items = this.items.slice(-maxItems);
    this.hasOlder = true;
  }

  #find(id: string): number {
    return this.items.findIndex((m) => m.id === id);
  }
}
