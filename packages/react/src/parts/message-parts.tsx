import { useEffect, useRef } from 'react';
import type { ComponentPropsWithoutRef, ComponentType, KeyboardEvent, ReactNode } from 'react';
import type { MessageItem } from '@parley/client';
import { useParley, useStrings } from '../hooks/context.ts';
import { useConversation } from '../hooks/open.ts';
import { Receipt } from './receipt.tsx';
import { isEmojiOnly } from './text.tsx';
import { Time } from './time.tsx';
import { cx, moveFocus } from './tools.ts';

/** The parts of a message that may be replaced; null leaves a part out. */
export interface MessageSlots {
  Author?: ComponentType<MessageAuthorProps> | null;
  Bubble?: ComponentType<MessageBubbleProps> | null;
  Meta?: ComponentType<MessageMetaProps> | null;
  Actions?: ComponentType<MessageActionsProps> | null;
}

export interface MessageAuthorProps extends ComponentPropsWithoutRef<'div'> {
  item: MessageItem;
  name: string;
}

/** Who wrote the messages that stand together, above the first one. What is inside comes after the time. */
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

export interface MessageAction {
  /** Of the usual ones: `reply`, `edit`, `pin`, `report`, `delete`; after a question `delete`, `keep`. */
  id: string;
  label: string;
  icon: ReactNode;
  danger?: boolean;
  onPress: () => void;
}

export interface MessageActionsProps extends Omit<ComponentPropsWithoutRef<'div'>, 'children'> {
  item: MessageItem;
  /** At least one. */
  actions: readonly MessageAction[];
  /** What the actions answer, for instance whether to delete. */
  question?: string | undefined;
}

/** The buttons of a message, while it has the pointer or the focus. */
export function MessageActions({ item: _, actions, question, className, ...rest }: MessageActionsProps) {
  const { strings } = useParley();
  const bar = useRef<HTMLDivElement>(null);
  const onKeyDown = (event: KeyboardEvent): void => {
    const row = bar.current?.closest<HTMLElement>('li');
    const buttons = [...(bar.current?.querySelectorAll<HTMLElement>('button') ?? [])];
    if (event.key === 'Escape' || (event.key === 'ArrowLeft' && document.activeElement === buttons[0]))
      row?.focus();
    else if (!moveFocus(event, buttons, true)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      ref={bar}
      role="toolbar"
      aria-label={strings.actions}
      onKeyDown={onKeyDown}
      {...rest}
      className={cx('parley-actions', className)}
    >
      {question ? <span>{question}</span> : null}
      {actions.map((one, i) => (
        <Action key={one.id} of={one} focused={question !== undefined && i === 0} />
      ))}
    </div>
  );
}

/** @param focused whoever asked by the keyboard whether to delete answers there. */
function Action({ of, focused }: { of: MessageAction; focused: boolean }) {
  const { label, icon, danger, onPress } = of;
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (focused) button.current?.focus();
  }, [focused]);
  return (
    <button
      ref={button}
      type="button"
      tabIndex={-1}
      title={label}
      aria-label={label}
      data-danger={danger || undefined}
      onClick={onPress}
    >
      {icon}
    </button>
  );
}
