import { forwardRef, Fragment, memo, useRef, useState } from 'react';
import type { ComponentPropsWithoutRef, KeyboardEvent, PointerEvent, ReactNode } from 'react';
import type { Attachment as AttachmentData, MessageItem } from '@parley/client';
import { useParley } from '../hooks/context.ts';
import { useMessageById, useSenderOf } from '../hooks/messages.ts';
import { useName } from '../hooks/people.ts';
import { canReact } from '../hooks/reactions.ts';
import { useSlots } from '../hooks/slots.ts';
import { Attachment } from './attachment.tsx';
import { UserAvatar } from './avatar.tsx';
import { Icon } from './icon.tsx';
import { later } from './later.ts';
import type { ChooseActions } from './message-actions.tsx';
import { MessageAuthor, MessageBubble, MessageMeta } from './message-parts.tsx';
import type { MessageSlots } from './message-parts.tsx';
import type { Asked } from './message-tools.tsx';
import { PollCard } from './poll.tsx';
import { ReactionBar } from './reactions.tsx';
import { marked } from './text.tsx';
import { timeOf } from './time.tsx';
import { cx } from './tools.ts';

export interface MessageProps extends Omit<ComponentPropsWithoutRef<'li'>, 'children'> {
  item: MessageItem;
  own: boolean;
  /** The first, or the last, of messages that stand together. */
  first: boolean;
  last: boolean;
  highlight?: boolean;
  onReply?: ((item: MessageItem) => void) | undefined;
  onEdit?: ((item: MessageItem) => void) | undefined;
  /** Deletes the message, for instance after time to think again; without it the row asks and deletes. */
  onDelete?: (item: MessageItem) => void;
  /** Goes to the message that this one answers. */
  onQuote?: (messageId: string) => void;
  /** Changes the buttons. */
  actions?: ChooseActions | undefined;
  /** Shows an attachment in another way; undefined leaves it to the kit. */
  renderAttachment?: ((attachment: AttachmentData) => ReactNode) | undefined;
  /** Below which of the user's own messages stands where they have come to: the last of those that stand together, or each. */
  receipts?: 'last' | 'every' | undefined;
  /** `rows`: without bubbles, one's own among the others, each with name and picture. */
  variant?: 'bubbles' | 'rows' | undefined;
  /** Parts of this message. Keep the object the same between renders. Those of the thread and of the provider need no prop. */
  slots?: MessageSlots;
}

const MessageTools = later(() => import('./message-tools.tsx'));
/** A finger that rests for so long asks what one can do. */
const pressMs = 500;

const says = (item: MessageItem, fallback: string): string =>
  item.text || item.poll?.question || item.attachments.map(({ name }) => name).join(', ') || fallback;

/** One message. It renders again only when it changes, or its place among its neighbours does. */
export const Message = memo(
  forwardRef<HTMLLIElement, MessageProps>(function Message(props, ref) {
    const { item, own, first, last, highlight, onReply, onEdit, onQuote, ...others } = props;
    const {
      onDelete,
      actions: choose,
      renderAttachment,
      receipts,
      variant,
      slots,
      className,
      ...rest
    } = others;
    const {
      Author = MessageAuthor,
      Bubble = MessageBubble,
      Meta = MessageMeta,
      Reactions = ReactionBar,
    } = { ...useSlots<MessageSlots>(), ...slots };
    const { client, strings, locale, shortcuts } = useParley();
    const [hot, setHot] = useState(false);
    const [asked, ask] = useState<Asked>(null);
    const [unfolded, setUnfolded] = useState(false);
    const pressing = useRef<ReturnType<typeof setTimeout>>(undefined);
    const name = useName(item.senderId);
    const answered = useSenderOf(item.conversationId, item.replyTo);
    const answeredName = useName(answered);
    const deleted = item.deletedAt !== null;
    const folded = item.blocked === true && !deleted && !unfolded;
    const failed = item.status === 'failed';
    const quiet = deleted || folded || failed;
    const author = own ? strings.you : name;
    const row = variant === 'rows';
    const signed = row || !own;
    const what = deleted ? strings.deleted : folded ? strings.blocked : says(item, '');
    const about =
      item.replyTo === null || deleted
        ? ''
        : `, ${strings.inReplyTo(answered === undefined ? null : answered === client.userId ? strings.you : answeredName)}`;

    const onKeyDown = (event: KeyboardEvent<HTMLLIElement>): void => {
      rest.onKeyDown?.(event);
      if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
      const key = event.key.toLowerCase();
      const canChange = own && item.status === 'sent' && !deleted;
      if (event.key === 'ArrowRight' || event.key === 'Enter')
        event.currentTarget.querySelector<HTMLElement>('.parley-actions button')?.focus();
      else if (shortcuts && key === 'r' && onReply && !deleted) onReply(item);
      else if (shortcuts && key === 'e' && onEdit && canChange && !item.poll) onEdit(item);
      else if (shortcuts && key === '+' && !quiet && canReact(client, item)) ask('emoji');
      else if (event.key === 'Delete' && canChange) {
        if (onDelete) onDelete(item);
        else ask('delete');
      } else return;
      event.preventDefault();
    };
    // A finger is over a message for as long as it touches it: what came with it would be gone before one can press it.
    const point = (over: boolean) => (event: PointerEvent) => {
      if (event.pointerType !== 'touch') setHot(over);
    };
    // To scroll cancels the pointer, and so the press.
    const lift = (): void => {
      clearTimeout(pressing.current);
      pressing.current = undefined;
    };

    return (
      <li
        ref={ref}
        className={cx('parley-message', className)}
        data-key={item.key}
        data-own={own || undefined}
        data-variant={variant}
        data-first={first || undefined}
        data-last={last || undefined}
        data-state={deleted ? 'deleted' : item.status}
        data-edited={item.editedAt !== null || undefined}
        data-reacted={(item.reactions?.counts.length ?? 0) > 0 || undefined}
        data-highlight={highlight || undefined}
        aria-label={`${author}, ${timeOf(item.createdAt, locale)}: ${what}${about}`}
        {...rest}
        onKeyDown={onKeyDown}
        onPointerEnter={point(true)}
        onPointerLeave={point(false)}
        onFocus={(event) => {
          rest.onFocus?.(event);
          if (!asked) setHot(true);
        }}
        onBlur={(event) => {
          if (event.currentTarget.contains(event.relatedTarget as Node | null)) return;
          setHot(false);
          ask((was) => (was === 'delete' ? null : was));
        }}
      >
        {signed &&
          ((row ? first : last) && item.senderId !== null ? (
            <UserAvatar userId={item.senderId} size={32} />
          ) : (
            <span />
          ))}
        <div
          className="parley-content"
          onPointerDown={({ pointerType, target }) => {
            lift();
            // Seeking in a sound is a long press, too.
            if (pointerType === 'touch' && !quiet && !(target as Element).closest('input, video, audio'))
              pressing.current = setTimeout(() => ask('sheet'), pressMs);
          }}
          onPointerUp={lift}
          onPointerCancel={lift}
          onContextMenu={(event) => {
            // The browser's own menu of a long press; a mouse still gets it.
            if (pressing.current !== undefined) event.preventDefault();
          }}
          onClickCapture={(event) => {
            // What was held is not pressed when the finger lifts.
            if (asked !== 'sheet') return;
            event.preventDefault();
            event.stopPropagation();
          }}
        >
          {signed && first && Author ? <Author item={item} name={author} /> : null}
          {item.pinned ? <Pinned by={item.pinned.by} /> : null}
          {deleted ? (
            Bubble && <Bubble item={item}>{strings.deleted}</Bubble>
          ) : folded ? (
            <div className="parley-bubble" data-folded>
              {strings.blocked}{' '}
              <button type="button" className="parley-unfold" onClick={() => setUnfolded(true)}>
                {strings.show}
              </button>
            </div>
          ) : (
            <>
              {Bubble && ((item.text && item.text !== item.poll?.question) || item.replyTo) ? (
                <Bubble item={item}>
                  {item.replyTo ? (
                    <Quote conversationId={item.conversationId} messageId={item.replyTo} onGo={onQuote} />
                  ) : null}
                  {item.text === null ? null : marked(item.text, item.mentions, client.userId)}
                  {item.editedAt === null ? null : <small className="parley-edited"> {strings.edited}</small>}
                </Bubble>
              ) : null}
              {item.attachments.map((attachment) => (
                <Fragment key={attachment.id}>
                  {renderAttachment?.(attachment) ?? <Attachment attachment={attachment} />}
                </Fragment>
              ))}
              {item.attachmentIds && item.attachments.length === 0 ? (
                <div className="parley-bubble">{strings.files(item.attachmentIds.length)}</div>
              ) : null}
              <PollCard item={item} />
              {Reactions && <Reactions item={item} offer={hot && !failed} onMore={() => ask('emoji')} />}
            </>
          )}
          {Meta && own && (last || failed || receipts === 'every') && !deleted ? <Meta item={item} /> : null}
        </div>
        {(hot && !quiet) || asked ? (
          <MessageTools {...{ item, own, hot, asked, ask, onReply, onEdit, onDelete, choose, slots }} />
        ) : null}
      </li>
    );
  }),
);

/** The mark of a pinned message, with the name of the user who pinned it. */
function Pinned({ by }: { by: string | null }) {
  const { strings, client } = useParley();
  const name = useName(by);
  return (
    <span className="parley-pinned">
      <Icon name="pin" size={12} />
      <bdi>{strings.pinnedBy(by !== null && by === client.userId ? strings.you : name)}</bdi>
    </span>
  );
}

export interface QuoteProps {
  conversationId: string;
  messageId: string;
  onGo?: ((messageId: string) => void) | undefined;
}

/** The message that another one answers. */
export function Quote({ conversationId, messageId, onGo }: QuoteProps) {
  const { strings, client } = useParley();
  const quoted = useMessageById(conversationId, messageId);
  const name = useName(quoted?.senderId);
  const author = quoted?.senderId != null && quoted.senderId === client.userId ? strings.you : name;
  const text = !quoted
    ? strings.earlierMessage
    : quoted.deletedAt !== null
      ? strings.deleted
      : says(quoted, strings.photo);
  return (
    <button type="button" className="parley-quote" onClick={() => onGo?.(messageId)}>
      {quoted ? <b>{author}</b> : null}
      <span dir="auto">{text}</span>
      <span className="parley-hidden">{strings.goToMessage}</span>
    </button>
  );
}
