import type { ParleyError } from '../errors.ts';
import { Derived } from '../store.ts';
import type {
  ConversationListItem,
  EventFrame,
  MessageOrTombstone,
  Notifications,
  SyncResult,
} from '../types.ts';
import { isTombstone } from './message-window.ts';

export interface ConversationListSnapshot {
  /** The loaded conversations, newest first: by last activity, or by last message where the client was asked for that. */
  items: readonly ConversationListItem[];
  /** Unread messages over all conversations, loaded or not. */
  unreadTotal: number;
  /** Those of them that mention this user. */
  mentionUnreadTotal: number;
  hasMore: boolean;
  /** Why the first page is not there yet. The client tries again by itself; `loadMore` does so at once. */
  error?: ParleyError;
}

/** What is known about one conversation; `item` is set once its page of the list was loaded. */
interface Head {
  lastSeq: number;
  unread: number;
  /** Missing in lists that an earlier version stored. */
  mentions?: number;
  lastReadSeq: number;
  /** True if the server reported events that this client never saw, so that what follows is not contiguous. */
  gap: boolean;
  /** The last request tick that may not know what happened here since. */
  touched: number;
  /** The last request tick whose answer may be older than `lastSeq`. */
  moved: number;
  item: ConversationListItem | null;
}

type Levelled = Pick<ConversationListItem, 'level' | 'muted'> & { mutedUntil?: string | null };

export interface ConversationListOptions {
  /** By messages alone, not by all that happens. */
  byMessage: boolean;
  /** A count cannot be known from events alone: the server must be asked. */
  doubt(): void;
  /** The server has fewer events than were seen here: its store was restored to an earlier state. */
  wentBack(cid: string): void;
  /** Whether a read mark of this client is still on its way. */
  readPending(cid: string): boolean;
  /** Whether the message of somebody else is for this user, by name or for all. */
  mentions(message: MessageOrTombstone): boolean;
  /** A level that ends by itself came in. */
  levelEnds(): void;
  now(): string;
}

/**
 * The list with its counts. Server values (sync, list pages) are the base; an event counts only when it is
 * beyond that base; whatever is uncertain asks for a sync (`doubt`) or for list pages (`stale`).
 * An answer that may be older than something that happened since its request (`begin`) changes no count.
 */
export class ConversationList {
  readonly store: Derived<ConversationListSnapshot>;
  /** Conversations whose details must be fetched, with the tick when that became known. */
  readonly stale = new Map<string, number>();
  nextCursor: string | null = null;
  error: ParleyError | undefined;
  me = '';
  defaultLevel: ConversationListItem['level'] = 'all';
  #heads = new Map<string, Head>();
  #gone = new Map<string, number>();
  #tick = 0;
  #o: ConversationListOptions;

  constructor(options: ConversationListOptions) {
    this.#o = options;
    this.store = new Derived(() => this.#snapshot());
  }

  ids(): string[] {
    return [...this.#heads.keys()];
  }

  /** The state to store; if there are more than `max` conversations, only those that the list shows. */
  save(max: number): {
    heads: [string, Head][];
    stale?: string[];
    nextCursor: string | null;
    whole: boolean;
  } {
    const whole = this.#heads.size <= max;
    const heads = [...this.#heads].filter(([, head]) => whole || head.item).slice(0, max);
    return { heads, stale: [...this.stale.keys()], nextCursor: this.nextCursor, whole };
  }
  restore({ heads, stale, nextCursor }: Omit<ReturnType<ConversationList['save']>, 'whole'>): void {
    for (const [cid, head] of heads) {
      this.#heads.set(cid, { ...head, touched: 0 });
      if (!stale || stale.includes(cid)) this.markStale(cid); // Earlier versions stored no `stale`.
    }
    this.nextCursor = nextCursor;
    this.store.touch();
  }

  begin(): number {
    return ++this.#tick;
  }

  lastSeq(cid: string): number | undefined {
    return this.#heads.get(cid)?.lastSeq;
  }

  markStale(cid: string): void {
    this.stale.set(cid, this.#tick);
  }

  /** The answer to a request begun at `started` brought everything that was missing before. */
  fresh(cid: string, started: number): void {
    if (this.stale.get(cid)! < started) this.stale.delete(cid);
  }

  /** True if something happened in the conversation that the answer to a request begun at `started` may not know. */
  touchedSince(cid: string, started: number): boolean {
    return (this.#heads.get(cid)?.touched ?? -1) >= started;
  }

  item(cid: string): ConversationListItem | undefined {
    const head = this.#heads.get(cid);
    return head?.item ? this.#item(head.item, head) : undefined;
  }

  /** Returns the ids of conversations that are gone. */
  applySync(result: SyncResult, started: number, thorough: boolean): string[] {
    if (result.fullReload) {
      for (const [cid, head] of this.#heads) if (head.touched < started) this.#heads.delete(cid);
      this.nextCursor = null;
    }
    for (const item of result.conversations) {
      const { id } = item;
      const head = this.#base(item, null, started);
      if (thorough && head?.item) this.markStale(id); // Sync contains neither read marks nor mute.
    }
    const removed = result.removed.filter((cid) => {
      const head = this.#heads.get(cid);
      if (!head) return false;
      if (head.touched >= started) this.#o.doubt();
      else this.#heads.delete(cid);
      return head.touched < started;
    });
    for (const [cid, tick] of this.#gone) if (tick < started) this.#gone.delete(cid);
    this.store.touch();
    return removed;
  }

  applyPage(items: readonly ConversationListItem[], started: number): void {
    for (const item of items) {
      const head = this.#base(item, item.lastReadSeq, started);
      if (!head) continue;
      const old = item.lastSeq < head.lastSeq;
      if (old) this.markStale(item.id);
      else this.fresh(item.id, started);
      this.#setLevel(
        head,
        old && head.item ? head.item : item,
        head.item && head.touched >= started ? head.item : item,
      );
    }
    this.store.touch();
  }

  #base(item: SyncResult['conversations'][number], readSeq: number | null, started: number): Head | null {
    const { id: cid, lastSeq, unreadCount: unread, mentionUnreadCount = 0 } = item;
    if ((this.#gone.get(cid) ?? 0) >= started) {
      this.#o.doubt(); // The user is a member again, or was not yet told of the removal: the next answer will tell.
      return null;
    }
    let head = this.#heads.get(cid);
    if (!head) {
      head = this.#add(cid, lastSeq, unread > 0);
      head.touched = 0;
      head.moved = started;
      this.markStale(cid);
    }
    if (lastSeq < head.lastSeq && head.moved < started) {
      head.lastSeq = lastSeq;
      head.lastReadSeq = readSeq ?? 0;
      head.gap = true;
      this.markStale(cid);
      this.#o.wentBack(cid);
    }
    if (head.touched >= started || lastSeq < head.lastSeq) this.#o.doubt();
    else if (!this.#o.readPending(cid)) {
      head.touched = started - 1; // Answers to earlier requests may know less.
      if (readSeq !== null) head.lastReadSeq = Math.max(head.lastReadSeq, readSeq);
      else if (unread !== head.unread) this.markStale(cid); // Another device may have read.
      head.unread = unread;
      head.mentions = mentionUnreadCount;
    }
    if (lastSeq > head.lastSeq) {
      head.lastSeq = lastSeq;
      head.moved = this.#tick;
      head.gap = true;
      if (readSeq === null) this.markStale(cid);
    }
    return head;
  }

  /**
   * `ours`: this client is sending this message. Returns null for a duplicate; `contiguous` is true if everything up
   * to this seq was seen here.
   */
  applyEvent({ e, cid, seq, d }: EventFrame, ours = false): { contiguous: boolean } | null {
    let head = this.#heads.get(cid);
    if (e === 'conversation.created' && (!head || seq > head.lastSeq)) {
      head ??= this.#add(cid, seq, false);
      const { id, type, name, metadata, createdAt, members, rules } = d.conversation;
      head.item ??= {
        id,
        type,
        name,
        metadata,
        createdAt,
        lastSeq: seq,
        unreadCount: 0,
        lastReadSeq: 0,
        muted: false,
        level: rules?.defaultLevel ?? this.defaultLevel,
        lastMessage: null,
        lastMessageAt: null,
        lastActivityAt: this.#o.now(),
        ...(rules && { rules }),
        ...(type === 'direct' ? { members } : {}),
      };
      if (seq > 1) this.#doubt(cid); // A direct conversation that was restored already has events.
      head.lastSeq = seq;
      head.moved = this.#tick;
      this.store.touch();
      return { contiguous: !head.gap };
    }
    if (!head) {
      head = this.#add(cid, seq, true);
      this.#doubt(cid);
    } else if (seq <= head.lastSeq) return null;
    else if (seq > head.lastSeq + 1) {
      head.gap = true;
      this.#doubt(cid);
    }
    head.lastSeq = seq;
    head.moved = this.#tick;
    const item = head.item;
    const changed: Partial<ConversationListItem> = { lastActivityAt: this.#o.now() };
    switch (e) {
      case 'message.new': {
        const { message } = d;
        if (message.senderId === this.me) {
          // If this client sent the message, its ack moves the read mark; another device has moved it; a server that
          // sent on the user's behalf has not.
          if (!ours && message.seq > head.lastReadSeq) this.#doubt(cid);
          head.unread = head.mentions = 0;
        } else if (!isTombstone(message) && message.seq > head.lastReadSeq) {
          head.unread++;
          if (this.#o.mentions(message)) head.mentions = (head.mentions ?? 0) + 1;
        }
        if (!isTombstone(message)) {
          const { id, senderId, text, createdAt, attachments } = message;
          changed.lastMessage = { id, seq: message.seq, senderId, text, createdAt };
          const [file] = attachments;
          if (file)
            changed.lastMessage.attachments = {
              count: attachments.length,
              mimeType: file.mimeType,
              name: file.name,
            };
          changed.lastActivityAt = changed.lastMessageAt = createdAt;
        }
        break;
      }
      case 'message.updated':
        // It may have named this user before, and may do so now.
        if (head.mentions || (head.unread > 0 && this.#o.mentions(d.message))) this.#o.doubt();
        if (item?.lastMessage?.id === d.message.id && !isTombstone(d.message))
          changed.lastMessage = { ...item.lastMessage, text: d.message.text };
        break;
      case 'message.deleted':
        // Only the server knows whether the message counted as unread, and which message is the last one now.
        if (head.unread > 0) this.#o.doubt();
        if (item?.lastMessage?.id === d.id) this.#doubt(cid);
        break;
      case 'conversation.updated': {
        const { name, metadata, rules } = d.changes;
        if (rules) {
          // Only the server knows whether the user chose its level.
          if (rules.defaultLevel !== item?.rules?.defaultLevel) this.#doubt(cid);
          changed.rules = rules;
        }
        if (name !== undefined) changed.name = name;
        if (metadata !== undefined) changed.metadata = metadata;
        break;
      }
      case 'member.added':
        if (d.userIds.includes(this.me)) this.#doubt(cid);
        break;
      default: // The event changes nothing that the list shows.
    }
    if (item) head.item = { ...item, ...changed };
    this.store.touch();
    return { contiguous: !head.gap };
  }

  /** The stream of the open conversation is complete up to this seq. */
  contiguous(cid: string, seq: number): void {
    const head = this.#heads.get(cid);
    if (head && seq >= head.lastSeq) head.gap = false;
  }

  /** Sets a read mark of this user, from here or from another device. Returns whether it moved. */
  read(cid: string, seq: number): boolean {
    const head = this.#heads.get(cid);
    if (!head || seq <= head.lastReadSeq) return false;
    head.lastReadSeq = seq;
    head.touched = this.#tick;
    if (seq >= head.lastSeq) head.unread = head.mentions = 0;
    else if (head.unread > 0) this.#o.doubt();
    this.store.touch();
    return true;
  }

  /** The server has stored the mark; answers that were sent before do not know it. */
  readDone(cid: string): void {
    const head = this.#heads.get(cid);
    if (!head) return;
    head.touched = this.#tick;
    if (head.unread > 0 || head.lastReadSeq < head.lastSeq) this.#o.doubt();
  }

  level({ conversationId, level, muted, until }: Notifications): void {
    const head = this.#heads.get(conversationId);
    if (!head?.item) return;
    head.touched = this.#tick;
    this.#setLevel(head, head.item, { level, muted, mutedUntil: until });
    this.store.touch();
  }

  #setLevel(
    head: Head,
    { mutedUntil: _, ...item }: ConversationListItem,
    { level, muted, mutedUntil }: Levelled,
  ): void {
    head.item = { ...item, level, muted, ...(mutedUntil ? { mutedUntil } : {}) };
    if (mutedUntil) this.#o.levelEnds();
  }

  remove(cid: string): void {
    this.#gone.set(cid, this.#tick);
    this.stale.delete(cid);
    if (this.#heads.delete(cid)) this.store.touch();
  }

  #add(cid: string, lastSeq: number, gap: boolean): Head {
    const head: Head = {
      lastSeq,
      unread: 0,
      lastReadSeq: 0,
      gap,
      touched: this.#tick,
      moved: this.#tick,
      item: null,
    };
    this.#heads.set(cid, head);
    this.#gone.delete(cid);
    return head;
  }

  #doubt(cid: string): void {
    this.markStale(cid);
    this.#o.doubt();
  }

  #item({ mentionUnreadCount: _, ...item }: ConversationListItem, head: Head): ConversationListItem {
    const { lastSeq, unread, mentions, lastReadSeq } = head;
    return {
      ...item,
      lastSeq,
      unreadCount: unread,
      ...(mentions ? { mentionUnreadCount: mentions } : {}),
      lastReadSeq: Math.max(lastReadSeq, item.lastReadSeq),
    };
  }

  #snapshot(): ConversationListSnapshot {
    let unreadTotal = 0;
    let mentionUnreadTotal = 0;
    const items: ConversationListItem[] = [];
    for (const head of this.#heads.values()) {
      unreadTotal += head.unread;
      mentionUnreadTotal += head.mentions ?? 0;
      if (head.item) items.push(this.#item(head.item, head));
    }
    const at = (item: ConversationListItem): string =>
      this.#o.byMessage ? (item.lastMessageAt ?? item.createdAt) : item.lastActivityAt;
    items.sort((a, b) => (at(a) < at(b) ? 1 : at(a) > at(b) ? -1 : 0));
    return {
      items,
      unreadTotal,
      mentionUnreadTotal,
      hasMore: this.nextCursor !== null,
      ...(this.error && { error: this.error }),
    };
  }
}
