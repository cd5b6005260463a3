import type { ComponentType } from 'react';
import type { AvatarProps } from './parts/avatar.tsx';
import type { ConversationItemProps, UnreadBadgeProps } from './parts/conversation-item.tsx';
import type { EmojiPickerProps } from './parts/emoji.tsx';
import type { ReceiptProps } from './parts/receipt-view.tsx';
import type { ThreadSlots } from './parts/thread.tsx';

/**
 * Parts to replace wherever the kit shows them. A slot gets the props of the part it replaces, and may render that part:
 * what this package exports under the same name is always the usual part. Null leaves a part out.
 */
export interface Slots extends ThreadSlots {
  Avatar?: ComponentType<AvatarProps> | null;
  ConversationItem?: ComponentType<ConversationItemProps>;
  EmojiPicker?: ComponentType<EmojiPickerProps>;
  Receipt?: ComponentType<ReceiptProps> | null;
  UnreadBadge?: ComponentType<UnreadBadgeProps> | null;
}
