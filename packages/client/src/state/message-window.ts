import type { Message, MessageOrTombstone, Tombstone } from '../types.ts';
import type { Applied, Change } from './told.ts';

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
 * because it may be older than they are. Events of extensions wait for the module that knows them: they tell a whole
 * state, so it does not matter that others have been applied before.
 */
export class MessageWindow {
  items: MessageOrTombstone[] = [];
  hasOlder = false;
  hasNewer = false;
  #loads = 0;
  #generation = 0;
  #log: Applied[] = [];
  #change?: Change;
  #waiting: Applied[] = [];
  #me: () => string | null;
  #wake: () => void;

  /** @param wake called when an event waits for `use`. */
  constructor(me: () => string | null, wake: () => void) {
    this.#me = me;
    this.#wake = wake;
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
    this.#waiting = []; // The page is newer than they are.
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

  /**
   * Returns false if too many events arrived during a page request, or wait for their module, so that the latest page must
   * be loaded again.
   */
  apply(event: Applied): boolean {
    if (this.#loads > 0 && this.#log.push(event) > maxLog) return false;
    this.#apply(event);
    return this.#waiting.length <= maxLog;
  }

  /** From now on events of extensions are applied at once. */
  use(change: Change): void {
    this.#change = change;
    for (const event of this.#waiting.splice(0)) this.#apply(event);
  }

  /** Takes over a newer copy of a message, from the answer of a call. */
  upsert(message: MessageOrTombstone): void {
    const at = this.#find(message.id);
    const known = this.items[at];
    if (!known || !isNewer(message, known)) return;
    if (isTombstone(message)) return this.#set(at, normal(message));
    // What only messages have that were read stays, and a poll stays closed, also where an answer from before comes late.
    const { mentions: _, ...kept } = known;
    this.#set(at, { ...kept, ...message, ...(kept.poll?.closedAt && { poll: kept.poll }) });
  }

  #set(at: number, message: MessageOrTombstone): void {
    this.items = this.items.map((m, i) => (i === at ? message : m));
  }

  #apply(event: Applied): void {
    switch (event.e) {
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
      default: // It is about a message of the window, or about none.
        this.#extend(event, this.#find((event.d as { id?: string }).id));
    }
  }

  #extend(event: Applied, at: number): void {
    const message = this.items[at];
    if (!message || isTombstone(message)) return;
    if (this.#change) return this.#set(at, this.#change(message, event, this.#me()));
    this.#waiting.push(event);
    this.#wake();
  }

  #trimOlder(): void {
    if (this.items.length <= maxItems) return;
    this.items = this.items.slice(-maxItems);
    this.hasOlder = true;
  }

  #find(id: string | undefined): number {
    return this.items.findIndex((m) => m.id === id);
  }
}
