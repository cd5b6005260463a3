import type { ComponentPropsWithoutRef, ComponentType, ReactNode } from 'react';
import type { MessageItem } from '@parley/client';
import { useStrings } from '../hooks/context.ts';
import { useConversation } from '../hooks/open.ts';
import { later } from './later.ts';
import type { MessageActionsProps } from './message-actions.tsx';
import type { ReactionBarProps } from './reactions.tsx';
import { Receipt } from './receipt.tsx';
import { isEmojiOnly } from './text.tsx';
import { Time } from './time.tsx';
import { cx } from './tools.ts';

/** The parts of a message that may be replaced; null leaves a part out. */
export interface MessageSlots {
  Author?: ComponentType<MessageAuthorProps> | null;
  Bubble?: ComponentType<MessageBubbleProps> | null;
  Meta?: ComponentType<MessageMetaProps> | null;
  Actions?: ComponentType<MessageActionsProps> | null;
  Reactions?: ComponentType<ReactionBarProps> | null;
}

export interface MessageAuthorProps extends ComponentPropsWithoutRef<'div'> {
  item: MessageItem;
  name: string;
}

/** The author of a group of messages, above the first one. Children follow the time. */
export function MessageAuthor({ item, name, className, children, ...rest }: MessageAuthorProps) {
  return (
    <div {...rest} className={cx('parley-author', className)}>
      <bdi>{name}</bdi>
      <Time at={item.createdAt} />
      {children}
    </div>
  );
}

export interface MessageBubbleProps extends ComponentPropsWithoutRef<'div'> {
  item: MessageItem;
  /** What stands in the bubble: the quote and the text with its links, or that the message was deleted. */
  children?: ReactNode;
}

/** What somebody wrote. */
export function MessageBubble({ item, className, ...rest }: MessageBubbleProps) {
  const large = !item.replyTo && item.text !== null && isEmojiOnly(item.text);
  return (
    <div dir="auto" data-large={large || undefined} {...rest} className={cx('parley-bubble', className)} />
  );
}

export interface MessageMetaProps extends ComponentPropsWithoutRef<'div'> {
  item: MessageItem;
}

/** When an own message was written, and where it has come to, or that it failed. What is inside comes after that. */
export function MessageMeta({ item, className, children, ...rest }: MessageMetaProps) {
  return (
    <div {...rest} className={cx('parley-meta', className)}>
      <Time at={item.createdAt} />
      {item.status === 'failed' ? <Failure item={item} /> : <Receipt item={item} />}
      {children}
    </div>
  );
}

function Failure({ item }: { item: MessageItem }) {
  const strings = useStrings();
  const conversation = useConversation(item.conversationId);
  const { clientMsgId } = item;
  return (
    <span className="parley-failure" role="alert">
      {strings.failed}
      {clientMsgId === undefined ? null : (
        <>
          <button type="button" onClick={() => conversation?.retry(clientMsgId)}>
            {strings.retry}
          </button>
          <button type="button" onClick={() => conversation?.discard(clientMsgId)}>
            {strings.discard}
          </button>
        </>
      )}
    </span>
  );
}

/** The buttons of a message, while it has the pointer or the focus. They load when they are first shown. */
export const MessageActions = later<MessageActionsProps>(async () => ({
  default: (await import('./message-actions.tsx')).MessageActions,
}));
