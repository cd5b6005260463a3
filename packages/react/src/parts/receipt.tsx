import type { ConversationListItem, MessageItem } from '@parley/client';
import { useClient } from '../hooks/context.ts';
import { receiptOf, useReceipt } from '../hooks/reading.ts';
import { useRoster } from '../hooks/roster.ts';
import { useSlot } from '../hooks/slots.ts';
import { Receipt as View } from './receipt-view.tsx';
import type { ReceiptProps } from './receipt-view.tsx';

/** The receipt of a message of this user. */
export function Receipt({ item }: { item: MessageItem }) {
  const receipt = useReceipt(item.conversationId, item);
  const Shown = useSlot<ReceiptProps>('Receipt', View);
  return Shown ? <Shown {...receipt} /> : null;
}

/** The receipt of the last message of a conversation that need not be open, if that message is this user's. */
export function RowReceipt({ item, seen }: { item: ConversationListItem; seen: boolean }) {
  const { userId } = useClient();
  const members = useRoster(seen ? item.id : null, true);
  const Shown = useSlot<ReceiptProps>('Receipt', View);
  if (!Shown) return null;
  // It keeps its place until it is known.
  if (members.length === 0)
    return <Shown state="sent" readBy={0} others={0} quiet style={{ visibility: 'hidden' }} />;
  return <Shown {...receiptOf(members, userId, item.lastMessage!.seq)} quiet />;
}
