import type { ErrorInfo, ParleyError } from '../errors.ts';
import type { OutboxEntry } from '../outbox/storage.ts';
import type { Attachment, Mention, Message, MessageOrTombstone, Poll, Reactions } from '../types.ts';

/** One line of a conversation: a message from the server, or one of this user on its way. */
export interface MessageItem {
  /** Stays the same while a pending message becomes a sent one. */
  key: string;
  status: 'pending' | 'sent' | 'failed';
  error?: ErrorInfo;
  clientMsgId?: string;
  /** Null until sent. */
  id: string | null;
  /** Null until sent. */
  seq: number | null;
  conversationId: string;
  senderId: string | null;
  text: string | null;
  replyTo: string | null;
  attachments: readonly Attachment[];
  /** The uploads that a message on its way will carry. */
  attachmentIds?: readonly string[];
  metadata: Record<string, unknown>;
  /** 0 for a deleted message and for one that is not sent yet. */
  version: number;
  createdAt: string;
  editedAt: string | null;
  deletedAt: string | null;
  /** The mentions of the message; missing if there are none. */
  mentions?: readonly Mention[];
  /** This user blocks the sender. */
  blocked?: true;
  /** Missing where nobody has reacted, or the last one took it back; one's own show at once. */
  reactions?: Reactions;
  /** Missing where it is not pinned; one's own pins show at once. `by` is null for the server. */
  pinned?: { at: string; by: string | null };
  /** The poll of the message, if it has one; its results are `reactions.votes`, one's own vote `reactions.ownVotes`. */
  poll?: Poll;
}

const none = { replyTo: null, attachments: [], metadata: {}, version: 0, editedAt: null };

export function serverItem(m: MessageOrTombstone, clientMsgId: string | undefined): MessageItem {
  const { reactions, pinnedAt, pinnedBy = null, ...message } = m as Message;
  return {
    ...none,
    ...message,
    key: clientMsgId ?? m.id,
    status: 'sent',
    ...(clientMsgId === undefined ? {} : { clientMsgId }),
    // The server shows none either where the last one was taken back.
    ...(reactions?.total || reactions?.votes ? { reactions } : {}),
    ...(pinnedAt ? { pinned: { at: pinnedAt, by: pinnedBy } } : {}),
  };
}

export function entryItem(entry: OutboxEntry, me: string | null, error: ErrorInfo | undefined): MessageItem {
  const { clientMsgId, conversationId, draft, createdAt } = entry;
  const { text = null, replyTo = null, attachments, metadata = {}, ...rest } = draft;
  return {
    ...none,
    // `send` has made the poll whole.
    ...(rest as Pick<MessageItem, 'mentions' | 'poll'>),
    key: clientMsgId,
    status: entry.status === 'sent' ? 'sent' : error ? 'failed' : 'pending',
    ...(error ? { error } : {}),
    clientMsgId,
    id: entry.id ?? null,
    seq: entry.seq ?? null,
    conversationId,
    senderId: me,
    text,
    replyTo,
    ...(attachments ? { attachmentIds: attachments } : {}),
    metadata,
    createdAt: entry.sentAt ?? new Date(createdAt).toISOString(),
    deletedAt: null,
  };
}

export interface MessagesSnapshot {
  /** In ascending order; messages on their way come last. */
  items: readonly MessageItem[];
  hasOlder: boolean;
  hasNewer: boolean;
  status: 'loading' | 'ready' | 'removed';
  /** Why the first page is not there yet. The client tries again by itself; `jumpToLatest` does so at once. */
  error?: ParleyError;
}
