import { forwardRef, Fragment, memo, useEffect, useRef, useState } from 'react';
import type { ComponentPropsWithoutRef, KeyboardEvent, ReactNode } from 'react';
import type { Attachment as AttachmentData, MessageItem } from '@parley/client';
import { useParley } from '../hooks/context.ts';
import { useMessageById } from '../hooks/messages.ts';
import { useConversation } from '../hooks/open.ts';
import { useName } from '../hooks/people.ts';
import { useCanPin } from '../hooks/pins.ts';
import { Attachment } from './attachment.tsx';
import { UserAvatar } from './avatar.tsx';
import { Icon } from './icon.tsx';
import type { IconName } from './icon.tsx';
import { PollCard } from './poll.tsx';
import { ReactionBar } from './reactions.tsx';
import { Receipt } from './receipt.tsx';
import { ReportDialog } from './report.tsx';
import { isEmojiOnly, marked } from './text.tsx';
import { Time, timeOf } from './time.tsx';
import { cx, moveFocus } from './tools.ts';

export interface MessageProps extends Omit<ComponentPropsWithoutRef<'li'>, 'children'> {
  item: MessageItem;
  own: boolean;
  /** The first, or the last, of messages that stand together. */
  first: boolean;
  last: boolean;
  highlight?: boolean;
  onReply?: (item: MessageItem) => void;
  onEdit?: (item: MessageItem) => void;
  /** Deletes the message, for instance after time to think again; without it the row asks and deletes. */
  onDelete?: (item: MessageItem) => void;
  /** Goes to the message that this one answers. */
  onQuote?: (messageId: string) => void;
  /** Changes the buttons: gets the usual ones, returns those to show. */
  actions?: MessageActions;
  /** Shows an attachment in another way; undefined leaves it to the kit. */
  renderAttachment?: (attachment: AttachmentData) => ReactNode;
}

export interface MessageAction {
  /** Of the usual ones: `reply`, `edit`, `pin`, `report`, `delete`. */
  id: string;
  label: string;
  icon: ReactNode;
  danger?: boolean;
  onPress: () => void;
}
export type MessageActions = (usual: readonly MessageAction[], item: MessageItem) => readonly MessageAction[];

const says = (item: MessageItem, fallback: string): string =>
  item.text || item.poll?.question || item.attachments.map(({ name }) => name).join(', ') || fallback;

/** One message. It renders again only when it changes, or its place among its neighbours does. */
export const Message = memo(
  forwardRef<HTMLLIElement, MessageProps>(function Message(props, ref) {
    const { item, own, first, last, highlight, onReply, onEdit, onQuote, ...others } = props;
    const { onDelete, actions: choose, renderAttachment, className, ...rest } = others;
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
    const large = !deleted && !item.replyTo && item.text !== null && isEmojiOnly(item.text);

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

    const buttons = (): ReactNode => {
      if (asking)
        return (
          <>
            <span>{strings.deleteAsk}</span>
            <Action
              of={{
                id: 'delete',
                label: strings.delete,
                icon: icon('delete'),
                danger: true,
                onPress: () =>
                  void conversation?.delete(item.id!).catch(() => {
                    setAsking(false);
                    announcer.say(strings.notDeleted);
                  }),
              }}
              focused
            />
            <Action
              of={{ id: 'keep', label: strings.keep, icon: icon('close'), onPress: () => setAsking(false) }}
            />
          </>
        );
      const usual: MessageAction[] = [];
      const add = (id: IconName & ('reply' | 'edit' | 'delete'), onPress: () => void) =>
        usual.push({ id, label: strings[id], icon: icon(id), onPress });
      if (onReply && item.id !== null) add('reply', () => onReply(item));
      if (onEdit && canChange && item.text !== null && !item.poll) add('edit', () => onEdit(item));
      if (canPin) {
        const change = item.pinned ? conversation?.unpin : conversation?.pin;
        usual.push({
          id: 'pin',
          label: item.pinned ? strings.unpin : strings.pin,
          icon: icon('pin'),
          onPress: () => void change?.(item.id!).catch(() => announcer.say(strings.notPinned)),
        });
      }
      if (!own && item.id !== null && client.features?.includes('reports'))
        usual.push({
          id: 'report',
          label: strings.report,
          icon: icon('report'),
          onPress: () => setReporting(true),
        });
      if (canChange) add('delete', remove);
      const shown = choose ? choose(usual, item) : usual;
      return shown.length === 0 ? null : shown.map((one) => <Action key={one.id} of={one} />);
    };

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
          {!own && first ? (
            <div className="parley-author">
              <bdi>{author}</bdi>
              <Time at={item.createdAt} />
            </div>
          ) : null}
          {item.pinned ? <Pinned by={item.pinned.by} /> : null}
          {deleted ? (
            <div className="parley-bubble">{strings.deleted}</div>
          ) : folded ? (
            <div className="parley-bubble" data-folded>
              {strings.blocked}{' '}
              <button type="button" className="parley-unfold" onClick={() => setUnfolded(true)}>
                {strings.show}
              </button>
            </div>
          ) : (
            <>
              {(item.text && item.text !== item.poll?.question) || item.replyTo ? (
                <div className="parley-bubble" dir="auto" data-large={large || undefined}>
                  {item.replyTo ? (
                    <Quote conversationId={item.conversationId} messageId={item.replyTo} onGo={onQuote} />
                  ) : null}
                  {item.text === null ? null : marked(item.text, item.mentions, client.userId)}
                  {item.editedAt === null ? null : <small className="parley-edited"> {strings.edited}</small>}
                </div>
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
          {own && (last || failed) && !deleted ? (
            <div className="parley-meta">
              <Time at={item.createdAt} />
              {failed ? <Failure item={item} /> : <Receipt item={item} />}
            </div>
          ) : null}
        </div>
        {(hot || asking) && !deleted && !folded && !failed ? (
          <Actions label={strings.actions}>{buttons()}</Actions>
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

function Failure({ item }: { item: MessageItem }) {
  const { strings } = useParley();
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

function Actions({ label, children }: { label: string; children: ReactNode }) {
  const bar = useRef<HTMLDivElement>(null);
  if (children === null) return null;
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
    <div ref={bar} className="parley-actions" role="toolbar" aria-label={label} onKeyDown={onKeyDown}>
      {children}
    </div>
  );
}

const icon = (name: IconName): ReactNode => <Icon name={name} size={16} />;

/** @param focused whoever asked by the keyboard whether to delete answers there. */
function Action({ of, focused = false }: { of: MessageAction; focused?: boolean }) {
  const { label, icon: shown, danger, onPress } = of;
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
      {shown}
    </button>
  );
}
