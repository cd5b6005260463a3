import { forwardRef, Fragment, memo, useState } from 'react';
import type { ComponentPropsWithoutRef, KeyboardEvent, ReactNode } from 'react';
import type { Attachment as AttachmentData, MessageItem } from '@parley/client';
import { useParley } from '../hooks/context.ts';
import { useMessageById } from '../hooks/messages.ts';
import { useConversation } from '../hooks/open.ts';
import { useName } from '../hooks/people.ts';
import { useCanPin } from '../hooks/pins.ts';
import { useSlots } from '../hooks/slots.ts';
import { Attachment } from './attachment.tsx';
import { UserAvatar } from './avatar.tsx';
import { Icon } from './icon.tsx';
import type { IconName } from './icon.tsx';
import { MessageActions, MessageAuthor, MessageBubble, MessageMeta } from './message-parts.tsx';
import type { MessageAction, MessageSlots } from './message-parts.tsx';
import { PollCard } from './poll.tsx';
import { ReactionBar } from './reactions.tsx';
import { ReportDialog } from './report.tsx';
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
  /** Parts of this message. Keep the object the same between renders. Those of the thread and of the provider need no prop. */
  slots?: MessageSlots;
}

/** Gets the usual buttons of a message, returns those to show. */
export type ChooseActions = (usual: readonly MessageAction[], item: MessageItem) => readonly MessageAction[];

const says = (item: MessageItem, fallback: string): string =>
  item.text || item.poll?.question || item.attachments.map(({ name }) => name).join(', ') || fallback;

/** One message. It renders again only when it changes, or its place among its neighbours does. */
export const Message = memo(
  forwardRef<HTMLLIElement, MessageProps>(function Message(props, ref) {
    const { item, own, first, last, highlight, onReply, onEdit, onQuote, ...others } = props;
    const { onDelete, actions: choose, renderAttachment, receipts, slots, className, ...rest } = others;
    const {
      Author = MessageAuthor,
      Bubble = MessageBubble,
      Meta = MessageMeta,
      Actions = MessageActions,
    } = { ...useSlots<MessageSlots>(), ...slots };
    const { client, strings, locale, shortcuts, announcer } = useParley();
    const conversation = useConversation(item.conversationId);
    const [hot, setHot] = useState(false);
    const [asking, setAsking] = useState(false);
    const [reporting, setReporting] = useState(false);
    const [unfolded, setUnfolded] = useState(false);
    const name = useName(item.senderId);
    const deleted = item.deletedAt !== null;
    const folded = item.blocked === true && !deleted && !unfolded;
    const failed = item.status === 'failed';
    const canPin = useCanPin() && item.status === 'sent' && item.id !== null && !deleted;
    const canChange = own && item.status === 'sent' && !deleted;
    const author = own ? strings.you : name;
    const label = `${author}, ${timeOf(item.createdAt, locale)}: ${deleted ? strings.deleted : folded ? strings.blocked : says(item, '')}`;

    const remove = (): void => (onDelete ? onDelete(item) : setAsking(true));
    const onKeyDown = (event: KeyboardEvent<HTMLLIElement>): void => {
      rest.onKeyDown?.(event);
      if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
      const key = event.key.toLowerCase();
      if (event.key === 'ArrowRight' || event.key === 'Enter')
        event.currentTarget.querySelector<HTMLElement>('.parley-actions button')?.focus();
      else if (shortcuts && key === 'r' && onReply && !deleted) onReply(item);
      else if (shortcuts && key === 'e' && onEdit && canChange && !item.poll) onEdit(item);
      else if (event.key === 'Delete' && canChange) remove();
      else return;
      event.preventDefault();
    };

    const answers = (): MessageAction[] => {
      const erase = (): void =>
        void conversation?.delete(item.id!).catch(() => {
          setAsking(false);
          announcer.say(strings.notDeleted);
        });
      return [
        { id: 'delete', label: strings.delete, icon: icon('delete'), danger: true, onPress: erase },
        { id: 'keep', label: strings.keep, icon: icon('close'), onPress: () => setAsking(false) },
      ];
    };
    const buttons = (): readonly MessageAction[] => {
      if (asking) return answers();
      const usual: MessageAction[] = [];
      const add = (
        id: 'reply' | 'edit' | 'pin' | 'report' | 'delete',
        onPress: () => void,
        label = strings[id],
      ): unknown => usual.push({ id, label, icon: icon(id), onPress });
      if (onReply && item.id !== null) add('reply', () => onReply(item));
      if (onEdit && canChange && item.text !== null && !item.poll) add('edit', () => onEdit(item));
      if (canPin) {
        const change = item.pinned ? conversation?.unpin : conversation?.pin;
        add(
          'pin',
          () => void change?.(item.id!).catch(() => announcer.say(strings.notPinned)),
          item.pinned ? strings.unpin : strings.pin,
        );
      }
      if (!own && item.id !== null && client.features?.includes('reports'))
        add('report', () => setReporting(true));
      if (canChange) add('delete', remove);
      return choose ? choose(usual, item) : usual;
    };
    const shown = (hot || asking) && !deleted && !folded && !failed ? buttons() : [];

    return (
      <li
        ref={ref}
        className={cx('parley-message', className)}
        data-key={item.key}
        data-own={own || undefined}
        data-first={first || undefined}
        data-last={last || undefined}
        data-state={deleted ? 'deleted' : item.status}
        data-highlight={highlight || undefined}
        aria-label={label}
        {...rest}
        onKeyDown={onKeyDown}
        onPointerEnter={() => setHot(true)}
        onPointerLeave={() => setHot(false)}
        onFocus={(event) => (rest.onFocus?.(event), setHot(true))}
        onBlur={(event) => {
          if (event.currentTarget.contains(event.relatedTarget as Node | null)) return;
          setHot(false);
          setAsking(false);
        }}
      >
        {!own &&
          (last && item.senderId !== null ? <UserAvatar userId={item.senderId} size={32} /> : <span />)}
        <div className="parley-content">
          {!own && first && Author ? <Author item={item} name={author} /> : null}
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
              <ReactionBar item={item} offer={hot && !failed} />
            </>
          )}
          {Meta && own && (last || failed || receipts === 'every') && !deleted ? <Meta item={item} /> : null}
        </div>
        {Actions && shown.length > 0 ? (
          <Actions item={item} actions={shown} question={asking ? strings.deleteAsk : undefined} />
        ) : null}
        {reporting ? (
          <ReportDialog target={{ messageId: item.id! }} onClose={() => setReporting(false)} />
        ) : null}
      </li>
    );
  }),
);

/** Says that a message is pinned, and by whom. */
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

const icon = (name: IconName): ReactNode => <Icon name={name} size={16} />;
