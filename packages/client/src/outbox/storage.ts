import type { ErrorInfo } from '../errors.ts';
import type { Mention, NewPoll } from '../types.ts';

/** The message that an application gives to `send`. */
export interface Draft {
  text?: string;
  replyTo?: string;
  /** Ids of completed uploads. */
  attachments?: string[];
  metadata?: Record<string, unknown>;
  /** Without a text its question is the text, for lists, notifications and applications that do not know polls. */
  poll?: NewPoll;
  /** The mentions of the message; `compose()` creates them with the text. */
  mentions?: Mention[];
}

/**
 * One message on its way. `sent` and `discarded` entries stay stored for a while, so that another tab that knows the
 * entry learns how it ended. If a record is missing, the storage was cleared; sending again is safe, because the
 * server deduplicates by clientMsgId.
 */
export interface OutboxEntry {
  clientMsgId: string;
  conversationId: string;
  draft: Draft;
  /** Milliseconds; with `order` it gives one order across tabs and launches. */
  createdAt: number;
  order: number;
  /** Milliseconds; the 24 hours of the entry count from here: its creation or the last manual retry. */
  since?: number;
  status: 'pending' | 'failed' | 'sent' | 'discarded';
  error?: ErrorInfo;
  /** Set once the message was sent. */
  id?: string;
  seq?: number;
  sentAt?: string;
  endedAt?: number;
}

/**
 * Where unsent messages and the list of conversations survive a restart. Keys are opaque strings, values plain JSON.
 * `lock` runs one `fn` at a time for a name, across every tab or process that shares the storage; leave
 * it out when nobody shares it. React Native: `keyValueStorage(AsyncStorage)`.
 */
export interface Storage {
  list(prefix: string): Promise<unknown[]>;
  set(key: string, value: unknown): Promise<void>;
  delete(key: string): Promise<void>;
  lock?(name: string, fn: () => Promise<void>): Promise<void>;
}
