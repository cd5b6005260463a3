import { useCallback, useMemo, useSyncExternalStore } from 'react';
import type { Member, MessageItem } from '@parley/client';
import { useClient } from './context.ts';
import { useConversationItem } from './conversations.ts';
import { useConversation } from './open.ts';
import { useMembers } from './people.ts';
import { nothing } from './store.ts';

export interface ReadState {
  unreadCount: number;
  /** How far this user has read. */
  lastReadSeq: number;
  /** Marks messages as read up to `seq`, or all of them. */
  markRead(seq?: number): void;
  /** The others who have read up to `seq`. */
  readers(seq: number): readonly string[];
}

/** What this user, and what the others have read. */
export function useReadState(id: string | null | undefined): ReadState {
  const client = useClient();
  const item = useConversationItem(id);
  const members = useMembers(id);
  const markRead = useCallback(
    (seq?: number) => {
      if (id != null) client.conversations.markRead(id, seq);
    },
    [client, id],
  );
  const readers = useCallback(
    (seq: number) =>
      members.filter((m) => m.userId !== client.userId && m.lastReadSeq >= seq).map((m) => m.userId),
    [client, members],
  );
  return useMemo(
    () => ({ unreadCount: item?.unreadCount ?? 0, lastReadSeq: item?.lastReadSeq ?? 0, markRead, readers }),
    [item?.unreadCount, item?.lastReadSeq, markRead, readers],
  );
}

export type ReceiptState = 'waiting' | 'sent' | 'delivered' | 'read' | 'failed';

export interface Receipt {
  state: ReceiptState;
  /** How many of the others have read it. */
  readBy: number;
  /** How many others there are. */
  others: number;
}

/** Where a sent message has come to, by the marks of the members. */
export function receiptOf(members: readonly Member[], me: string | null, seq: number): Receipt {
  let [others, delivered, readBy] = [0, 0, 0];
  for (const m of members) {
    if (m.userId === me) continue;
    others++;
    if (m.lastReadSeq >= seq) readBy++;
    if (Math.max(m.lastReadSeq, m.lastDeliveredSeq) >= seq) delivered++;
  }
  return { state: readBy > 0 ? 'read' : delivered > 0 ? 'delivered' : 'sent', readBy, others };
}
const textOf = ({ state, readBy, others }: Receipt): string => `${state} ${readBy} ${others}`;

/** Where a message of this user has come to; renders only when that changes. */
export function useReceipt(id: string, item: Pick<MessageItem, 'status' | 'seq'>): Receipt {
  const client = useClient();
  const conversation = useConversation(id);
  const { status, seq } = item;
  const state = useSyncExternalStore(
    conversation?.members.subscribe ?? nothing,
    () =>
      status !== 'sent' || seq === null
        ? `${status === 'failed' ? 'failed' : 'waiting'} 0 0`
        : textOf(receiptOf(conversation?.members.get() ?? [], client.userId, seq)),
    () => 'sent 0 0',
  );
  return useMemo(() => {
    const [word, readBy, others] = state.split(' ');
    return { state: word as ReceiptState, readBy: Number(readBy), others: Number(others) };
  }, [state]);
}
