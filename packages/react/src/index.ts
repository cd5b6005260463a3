'use client';

export * from './hooks/index.ts';
export { english } from './strings.ts';
export type { Strings } from './strings.ts';
export type { Slots } from './slots.ts';
export { Attachment } from './parts/attachment.tsx';
export type { AttachmentProps } from './parts/attachment.tsx';
export { Avatar, GroupAvatar, UserAvatar } from './parts/avatar.tsx';
export type { AvatarProps, GroupAvatarProps } from './parts/avatar.tsx';
export { Chat } from './parts/chat.tsx';
export type { ChatProps } from './parts/chat.tsx';
export { AttachmentChip, Composer } from './parts/composer.tsx';
export type { ComposerProps } from './parts/composer.tsx';
export type { Offer, Trigger } from './parts/suggestions.tsx';
export { ConnectionBanner } from './parts/connection-banner.tsx';
export type { BannerState, ConnectionBannerProps } from './parts/connection-banner.tsx';
export { ConversationItem, UnreadBadge } from './parts/conversation-item.tsx';
export type { ConversationItemProps, UnreadBadgeProps } from './parts/conversation-item.tsx';
export { ConversationList } from './parts/conversation-list.tsx';
export type { ConversationListProps, Section } from './parts/conversation-list.tsx';
export type { EmojiPickerProps } from './parts/emoji.tsx';
export { Message, Quote } from './parts/message.tsx';
export type { MessageProps, QuoteProps } from './parts/message.tsx';
export type { ChooseActions, MessageAction, MessageActionsProps } from './parts/message-actions.tsx';
export { MessageActions, MessageAuthor, MessageBubble, MessageMeta } from './parts/message-parts.tsx';
export type {
  MessageAuthorProps,
  MessageBubbleProps,
  MessageMetaProps,
  MessageSlots,
} from './parts/message-parts.tsx';
export { MessageList } from './parts/message-list.tsx';
export type { MessageListHandle, MessageListProps } from './parts/message-list.tsx';
export type { PinListProps } from './parts/pins.tsx';
export { PollButton, PollCard } from './parts/poll.tsx';
export { ReactionBar } from './parts/reactions.tsx';
export type { ReactionBarProps } from './parts/reactions.tsx';
export { ReportDialog } from './parts/report.tsx';
export type { ReportDialogProps } from './parts/report-dialog.tsx';
export { Receipt } from './parts/receipt-view.tsx';
export type { ReceiptProps } from './parts/receipt-view.tsx';
export { Thread, ThreadHeader } from './parts/thread.tsx';
export type { ThreadHeaderProps, ThreadProps, ThreadSlots } from './parts/thread.tsx';
export { TypingIndicator } from './parts/typing-indicator.tsx';
export type { TypingIndicatorProps } from './parts/typing-indicator.tsx';
