import {
  forwardRef,
  Fragment,
  useCallback,
  useEffect,
  useImperativeHandle,
  useMemo,
  useRef,
  useState,
} from 'react';
import type { ComponentPropsWithoutRef, ComponentType, KeyboardEvent, ReactNode, Ref } from 'react';
import type { Attachment, MessageItem, ParleyError } from '@parley/client';
import { useParley } from '../hooks/context.ts';
import { useMessages } from '../hooks/messages.ts';
import type { MessagesView } from '../hooks/messages.ts';
import { useConversation } from '../hooks/open.ts';
import { useMembers } from '../hooks/people.ts';
import { useSlots } from '../hooks/slots.ts';
import { isPicture } from '../hooks/upload.ts';
import { ViewerContext } from './attachment.tsx';
import { Icon } from './icon.tsx';
import { later } from './later.ts';
import { Message } from './message.tsx';
import type { MessageProps } from './message.tsx';
import { Problem } from './problem.tsx';
import { dayName, dayOf } from './time.tsx';
import { cx, moveFocus } from './tools.ts';
import { useRowWindow } from './window.ts';

const Viewer = later(() => import('./viewer.tsx'));

export interface MessageListHandle {
  scrollToEnd(): void;
  scrollTo(messageId: string): void;
}

interface MessageListSlots {
  Message?: ComponentType<MessageProps> | undefined;
}

export interface MessageListProps extends Omit<ComponentPropsWithoutRef<'div'>, 'children'> {
  conversationId: string;
  /** Messages of one person within so many milliseconds stand together. */
  groupWithin?: number;
  /** `visible`: what is shown at the end of a visible page is read. `manual`: you call `markRead`. */
  markRead?: 'visible' | 'manual';
  onReply?: (item: MessageItem) => void;
  onEdit?: (item: MessageItem) => void;
  onAtEndChange?: (atEnd: boolean) => void;
  /** Changes the buttons of each message. Keep the function the same between renders, or all rows render. */
  actions?: MessageProps['actions'];
  renderAttachment?: MessageProps['renderAttachment'];
  receipts?: MessageProps['receipts'];
  /** What stands above the first message of a day, which began at `at`. */
  renderDay?: ((name: string, at: number) => ReactNode) | undefined;
  /** Shows a message that nobody sent in another way; undefined leaves it to the kit. */
  renderSystem?: ((item: MessageItem) => ReactNode) | undefined;
  slots?: MessageListSlots;
  handle?: Ref<MessageListHandle>;
}

const tintMs = 1_600;

/** The messages of a conversation: a bounded number of rows that stay where they are while others come. */
export const MessageList = forwardRef<HTMLDivElement, MessageListProps>(function MessageList(props, ref) {
  const { conversationId, groupWithin = 300_000, markRead = 'visible', onReply, onEdit, ...others } = props;
  const {
    onAtEndChange,
    actions,
    renderAttachment,
    receipts,
    renderDay,
    renderSystem,
    slots = {},
    handle,
    className,
    ...rest
  } = others;
  const { client, strings, locale, now, announcer } = useParley();
  const conversation = useConversation(conversationId);
  const messages = useMessages(conversationId);
  useMembers(conversationId); // Receipts need their marks.
  const { items, status, error } = messages;
  const { box, from, to, atEnd, loadingOlder, failed, loadOlder, onScroll, scrollToEnd, scrollTo } =
    useRowWindow(messages);
  const empty = status === 'loading' && items.length === 0;
  /** The failure after which the user tried again: each attempt fails with a new error object. */
  const [tried, setTried] = useState<ParleyError>();
  const [active, setActive] = useState<string | null>(null);
  const [tinted, setTinted] = useState<string | null>(null);
  const [viewed, setViewed] = useState<{ pictures: readonly Attachment[]; first: string } | null>(null);
  const common = useSlots<MessageListSlots>();
  const Row = slots.Message ?? common.Message ?? Message;
  const me = client.userId;

  const go = useCallback(
    (messageId: string) =>
      void scrollTo(messageId).then((key) => {
        setTinted(key);
        if (key !== null) setTimeout(() => setTinted((was) => (was === key ? null : was)), tintMs);
      }),
    [scrollTo],
  );
  const view = useCallback(
    (attachment: Attachment) => {
      const all = conversation?.messages.get().items.flatMap((item) => item.attachments) ?? [];
      const pictures = all.filter(({ mimeType }) => isPicture(mimeType));
      setViewed({ pictures: pictures.includes(attachment) ? pictures : [attachment], first: attachment.id });
    },
    [conversation],
  );
  useImperativeHandle(handle, () => ({ scrollToEnd, scrollTo: go }), [scrollToEnd, go]);
  useEffect(() => onAtEndChange?.(atEnd), [atEnd, onAtEndChange]);

  // What a message offers is there when somebody points at one, also without a network.
  useEffect(() => void import('./message-tools.tsx').catch(() => undefined), []);

  const divider = useDivider(conversationId, messages);
  const newCount = useNewCount(items, atEnd, me);
  const lastSeq = items.findLast((item) => item.seq !== null)?.seq ?? null;
  useEffect(() => {
    if (markRead !== 'visible' || !atEnd || lastSeq === null || !divider.known) return;
    const read = (): void => {
      if (document.visibilityState === 'visible') conversation?.markRead();
    };
    read();
    document.addEventListener('visibilitychange', read);
    return () => document.removeEventListener('visibilitychange', read);
  }, [markRead, atEnd, lastSeq, divider.known, conversation]);

  useEffect(
    () =>
      client.on('message', ({ conversationId: where, message }) => {
        if (where !== conversationId || message.senderId === client.userId || message.deletedAt) return;
        const name =
          (message.senderId !== null && client.users.find(message.senderId)?.name) || strings.someone;
        announcer.say(strings.from(name, message.text ?? strings.photo));
      }),
    [client, conversationId, announcer, strings],
  );

  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>): void => {
    rest.onKeyDown?.(event);
    const { target, currentTarget } = event;
    const all = [...currentTarget.querySelectorAll<HTMLElement>('[data-key]')];
    if (event.defaultPrevented) return;
    if (target === box.current && event.key === 'ArrowUp') all.at(-1)?.focus();
    else if (!all.includes(target as HTMLElement) || !moveFocus(event, all, false)) return;
    event.preventDefault();
  };

  // A message stands with its neighbour if nothing is between them: neither time, nor a day, nor the line of what is new.
  const dividerAt =
    divider.seq === null
      ? -1
      : items.findIndex((m) => m.seq !== null && m.seq > divider.seq! && m.senderId !== me);
  const showDivider = dividerAt > 0 || (dividerAt === 0 && !messages.hasOlder);
  const together = (a: MessageItem | undefined, b: MessageItem | undefined, at: number): boolean =>
    a !== undefined &&
    b !== undefined &&
    a.senderId === b.senderId &&
    Date.parse(b.createdAt) - Date.parse(a.createdAt) < groupWithin &&
    dayOf(Date.parse(a.createdAt)) === dayOf(Date.parse(b.createdAt)) &&
    !(showDivider && at === dividerAt);
  // One tab stop: the list itself until a row was chosen, so that a new row does not render the one before it.
  const tabStop = active !== null && items.slice(from, to).some((m) => m.key === active) ? active : null;

  const first = empty && error !== tried ? error : undefined;
  const problem = first ?? failed;
  const rows = items.slice(from, to).map((item, i) => {
    const at = from + i;
    const before = items[at - 1];
    const when = Date.parse(item.createdAt);
    // The first row always has its day, which stays at the top while one reads.
    const newDay = i === 0 || dayOf(Date.parse(before!.createdAt)) !== dayOf(when);
    const tabIndex = item.key === tabStop ? 0 : -1;
    const system = item.senderId === null && item.deletedAt === null ? renderSystem?.(item) : undefined;
    return (
      <Fragment key={item.key}>
        {newDay ? (
          <Separator
            className="parley-day"
            text={dayName(when, now(), locale, strings)}
            at={when}
            render={renderDay}
          />
        ) : null}
        {showDivider && at === dividerAt ? (
          <Separator className="parley-new" text={strings.newMessages(divider.count)} />
        ) : null}
        {system !== undefined ? (
          <li className="parley-system" data-key={item.key} tabIndex={tabIndex}>
            {system}
          </li>
        ) : (
          <Row
            item={item}
            own={item.senderId !== null && item.senderId === me}
            first={!together(before, item, at)}
            last={!together(item, items[at + 1], at + 1)}
            tabIndex={tabIndex}
            highlight={item.key === tinted}
            onReply={onReply}
            onEdit={onEdit}
            actions={actions}
            renderAttachment={renderAttachment}
            receipts={receipts}
            onQuote={go}
          />
        )}
      </Fragment>
    );
  });

  const outer = useRef<HTMLDivElement>(null);
  useImperativeHandle(ref, () => outer.current!);
  return (
    <div ref={outer} {...rest} className={cx('parley-messages', className)} onKeyDown={onKeyDown}>
      <div
        ref={box}
        className="parley-scroll"
        role="log"
        aria-live="off"
        aria-busy={status === 'loading'}
        aria-label={strings.messages}
        tabIndex={tabStop === null ? 0 : -1}
        onScroll={onScroll}
        onFocus={(event) => {
          const key = (event.target as HTMLElement).closest<HTMLElement>('[data-key]')?.dataset['key'];
          if (key !== undefined) setActive(key);
        }}
      >
        {problem ? (
          <Problem
            text={
              first
                ? strings.firstNotLoaded
                : problem.code === 'history_unavailable'
                  ? strings.historyUnavailable
                  : strings.notLoaded
            }
            onRetry={() => {
              if (!first) return loadOlder();
              setTried(first);
              void messages.jumpToLatest();
            }}
          />
        ) : loadingOlder || empty ? (
          <Skeleton />
        ) : null}
        {status === 'ready' && items.length === 0 ? (
          <p className="parley-empty">{strings.noMessages}</p>
        ) : null}
        <ViewerContext.Provider value={view}>
          <ol>{rows}</ol>
        </ViewerContext.Provider>
      </div>
      {atEnd ? null : (
        <button type="button" className="parley-jump" onClick={scrollToEnd}>
          <Icon name="down" size={16} />
          <span className="parley-hidden">{strings.jumpToLatest}</span>
          {newCount > 0 ? strings.newMessages(newCount) : null}
        </button>
      )}
      {viewed ? <Viewer {...viewed} onClose={() => setViewed(null)} /> : null}
    </div>
  );
});

interface SeparatorProps {
  className: string;
  text: string;
  at?: number;
  render?: MessageListProps['renderDay'];
}
function Separator({ className, text, at = 0, render }: SeparatorProps) {
  return (
    <li className={className}>
      <span role="separator" aria-label={text}>
        {render ? render(text, at) : <bdi>{text}</bdi>}
      </span>
    </li>
  );
}

const Skeleton = () => (
  <div className="parley-skeleton" aria-hidden="true">
    <i />
    <i />
    <i />
  </div>
);

/**
 * Where this user had read to when the thread was opened: the line stays until the thread is left. The list's count may wait for
 * a sync, so what is new is counted here where all of it is loaded.
 */
function useDivider(
  id: string,
  messages: MessagesView,
): { known: boolean; seq: number | null; count: number } {
  const { client } = useParley();
  const [found, setFound] = useState<{ id: string; seq: number | null; count: number } | null>(null);
  const latest = useRef(messages);
  useEffect(() => void (latest.current = messages));
  const ready = messages.status === 'ready';
  useEffect(() => {
    if (!ready) return;
    const row = client.conversations.get().items.find((item) => item.id === id);
    const seq = row?.unreadCount ? row.lastReadSeq : null;
    const { items, hasOlder } = latest.current;
    const whole = !hasOlder || (items[0]?.seq ?? 0) <= (seq ?? 0);
    const fresh = items.filter((m) => m.seq! > (seq ?? 0) && !m.deletedAt && m.senderId !== client.userId);
    const count = whole && seq !== null ? fresh.length : (row?.unreadCount ?? 0);
    setFound((was) => (was?.id === id ? was : { id, seq, count }));
  }, [client, id, ready]);
  return useMemo(
    () =>
      found?.id === id
        ? { known: true, seq: found.seq, count: found.count }
        : { known: false, seq: null, count: 0 },
    [found, id],
  );
}

/** How many messages of others came since the end was last seen. */
function useNewCount(items: readonly MessageItem[], atEnd: boolean, me: string | null): number {
  const seen = useRef(0);
  const last = items.findLast((item) => item.seq !== null)?.seq ?? 0;
  useEffect(() => {
    if (atEnd) seen.current = last;
  }, [atEnd, last]);
  if (atEnd) return 0;
  return items.filter((item) => item.seq !== null && item.seq > seen.current && item.senderId !== me).length;
}
