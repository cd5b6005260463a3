import { forwardRef, useCallback, useRef, useState } from 'react';
import type {
  ComponentPropsWithoutRef,
  ComponentType,
  DragEvent,
  ForwardedRef,
  KeyboardEvent,
  ReactNode,
} from 'react';
import type { MessageItem } from '@parley/client';
import { useParley } from '../hooks/context.ts';
import { useConversationItem } from '../hooks/conversations.ts';
import { useStatus } from '../hooks/messages.ts';
import { useConversation } from '../hooks/open.ts';
import { useCanPin } from '../hooks/pins.ts';
import { otherOf, useMembers, usePresence, useTitle } from '../hooks/people.ts';
import { SlotsContext, useSlotsWith } from '../hooks/slots.ts';
import { GroupAvatar, UserAvatar } from './avatar.tsx';
import { Composer } from './composer.tsx';
import type { ComposerProps } from './composer.tsx';
import { ConnectionBanner } from './connection-banner.tsx';
import type { ConnectionBannerProps } from './connection-banner.tsx';
import { Icon } from './icon.tsx';
import { later } from './later.ts';
import type { MessageProps } from './message.tsx';
import type { MessageSlots } from './message-parts.tsx';
import { MessageList } from './message-list.tsx';
import type { MessageListHandle, MessageListProps } from './message-list.tsx';
import type { PinListProps } from './pins.tsx';
import { timeOf } from './time.tsx';
import { cx, useFrame } from './tools.ts';
import { TypingIndicator } from './typing-indicator.tsx';
import type { TypingIndicatorProps } from './typing-indicator.tsx';

const PinList = later(() => import('./pins.tsx'));

export interface ThreadHeaderProps extends ComponentPropsWithoutRef<'header'> {
  conversationId: string;
  onBack?: (() => void) | undefined;
  /** Buttons at the end, for instance to call. */
  actions?: ReactNode;
  subtitle?: ReactNode;
}

/** Each part may be replaced; null leaves it out. */
export interface ThreadSlots extends MessageSlots {
  Header?: ComponentType<ThreadHeaderProps> | null;
  Banner?: ComponentType<ConnectionBannerProps> | null;
  Messages?: ComponentType<MessageListProps>;
  Message?: ComponentType<MessageProps>;
  Typing?: ComponentType<TypingIndicatorProps> | null;
  /** The list behind the button in the head; null leaves the button out too. */
  Pins?: ComponentType<PinListProps> | null;
  Composer?: ComponentType<ComposerProps> | null;
}

export interface ThreadProps extends Omit<ComponentPropsWithoutRef<'section'>, 'children'> {
  conversationId: string;
  onBack?: () => void;
  actions?: ReactNode;
  slots?: ThreadSlots | undefined;
  /** Changes the buttons of each message. */
  messageActions?: MessageProps['actions'];
  renderAttachment?: MessageProps['renderAttachment'];
  receipts?: MessageProps['receipts'];
  renderDay?: MessageListProps['renderDay'];
  renderSystem?: MessageListProps['renderSystem'];
  /** Why nothing can be written here. */
  readOnly?: string | null;
}

/** One conversation: header, banner, messages, typing indicator and composer. */
export const Thread = forwardRef<HTMLElement, ThreadProps>(function Thread(props, ref) {
  const slots = useSlotsWith(props.slots);
  // Replies and changes belong to one conversation: another one starts afresh.
  return (
    <SlotsContext.Provider value={slots}>
      <OneThread key={props.conversationId} {...props} slots={slots} forwarded={ref} />
    </SlotsContext.Provider>
  );
});

function OneThread(props: ThreadProps & { forwarded: ForwardedRef<HTMLElement> }) {
  const {
    conversationId,
    onBack,
    actions,
    slots = {},
    messageActions,
    renderAttachment,
    receipts,
    renderDay,
    renderSystem,
    readOnly = null,
    className,
    forwarded,
    ...rest
  } = props;
  const { client, strings } = useParley();
  const title = useTitle(useConversationItem(conversationId));
  const conversation = useConversation(conversationId);
  const status = useStatus(conversationId);
  const [about, setAbout] = useState<{ kind: 'reply' | 'edit'; item: MessageItem } | null>(null);
  const [dropped, setDropped] = useState<readonly File[] | null>(null);
  const [over, setOver] = useState(false);
  const { Header = ThreadHeader, Banner = ConnectionBanner, Messages = MessageList } = slots;
  const { Typing = TypingIndicator, Composer: Write = Composer, Pins = PinList } = slots;
  const canPin = useCanPin();
  const list = useRef<MessageListHandle>(null);
  const [pinsOpen, setPinsOpen] = useState(false);

  const reply = useCallback((item: MessageItem) => setAbout({ kind: 'reply', item }), []);
  const edit = useCallback((item: MessageItem) => setAbout({ kind: 'edit', item }), []);
  const cancel = useCallback(() => setAbout(null), []);
  const editLast = (): void => {
    const last = conversation?.messages
      .get()
      .items.findLast(
        (item) =>
          item.senderId === client.userId &&
          item.status === 'sent' &&
          item.deletedAt === null &&
          item.text !== null &&
          !item.poll,
      );
    if (last) edit(last);
  };
  const goTo = async ({ id, seq }: MessageItem): Promise<void> => {
    setPinsOpen(false);
    if (!conversation?.messages.get().items.some((item) => item.id === id)) {
      await conversation?.jumpTo(seq!).catch(() => undefined);
      // The list follows when React has rendered it.
      await new Promise((resolve) => setTimeout(resolve));
    }
    list.current?.scrollTo(id!);
  };
  const hasFiles = (event: DragEvent): boolean => event.dataTransfer.types.includes('Files');
  const onKeyDown = (event: KeyboardEvent<HTMLElement>): void => {
    rest.onKeyDown?.(event);
    if (event.key !== 'Escape' || event.defaultPrevented) return;
    if (about) cancel();
    else onBack?.();
  };
  const writable = status === 'removed' ? strings.removed : readOnly;
  return (
    <section
      ref={forwarded}
      aria-label={strings.conversationWith(title)}
      {...useFrame()}
      {...rest}
      className={cx('parley-thread', className)}
      data-drop={over || undefined}
      onKeyDown={onKeyDown}
      onDragOver={(event) => {
        if (!hasFiles(event) || writable !== null) return;
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        setOver(false);
        if (!hasFiles(event) || writable !== null) return;
        event.preventDefault();
        setDropped([...event.dataTransfer.files]);
      }}
    >
      {Header ? (
        <Header
          conversationId={conversationId}
          actions={
            canPin && Pins ? (
              <>
                <button
                  type="button"
                  className="parley-button"
                  aria-label={strings.pins}
                  title={strings.pins}
                  aria-haspopup="dialog"
                  aria-expanded={pinsOpen}
                  onClick={() => setPinsOpen(!pinsOpen)}
                >
                  <Icon name="pin" />
                </button>
                {actions}
              </>
            ) : (
              actions
            )
          }
          onBack={onBack}
        />
      ) : null}
      {pinsOpen && Pins ? (
        <Pins
          conversationId={conversationId}
          onGo={(item) => void goTo(item)}
          onClose={() => setPinsOpen(false)}
        />
      ) : null}
      {Banner ? <Banner conversationId={conversationId} /> : null}
      <Messages
        conversationId={conversationId}
        onReply={reply}
        onEdit={edit}
        actions={messageActions}
        renderAttachment={renderAttachment}
        receipts={receipts}
        renderDay={renderDay}
        renderSystem={renderSystem}
        handle={list}
      />
      {Typing ? <Typing conversationId={conversationId} /> : null}
      {Write ? (
        <Write
          conversationId={conversationId}
          to={title}
          editing={about?.kind === 'edit' ? about.item : null}
          replyTo={about?.kind === 'reply' ? about.item : null}
          onCancel={cancel}
          onEditLast={editLast}
          readOnly={writable}
          dropped={dropped}
        />
      ) : null}
    </section>
  );
}

export const ThreadHeader = forwardRef<HTMLElement, ThreadHeaderProps>(function ThreadHeader(props, ref) {
  const { conversationId, onBack, actions, subtitle, className, children, ...rest } = props;
  const { client, strings } = useParley();
  const item = useConversationItem(conversationId);
  const title = useTitle(item);
  const other = otherOf(item, client.userId);
  return (
    <header ref={ref} className={cx('parley-thread-head', className)} {...rest}>
      {onBack ? (
        <button
          type="button"
          className="parley-button parley-back"
          aria-label={strings.back}
          onClick={onBack}
        >
          <Icon name="back" />
        </button>
      ) : null}
      {other === null ? (
        <GroupAvatar conversationId={conversationId} name={title} size={36} />
      ) : (
        <UserAvatar userId={other} size={36} presence />
      )}
      <div>
        <h2>
          <bdi>{title}</bdi>
        </h2>
        <small>
          {subtitle ?? (other === null ? <Count id={conversationId} /> : <Seen userId={other} />)}
        </small>
      </div>
      {children}
      {actions}
    </header>
  );
});

function Count({ id }: { id: string }) {
  const { strings } = useParley();
  const { length } = useMembers(id);
  return length > 0 ? strings.memberCount(length) : null;
}

function Seen({ userId }: { userId: string }) {
  const { strings, locale } = useParley();
  const presence = usePresence([userId]).get(userId);
  if (!presence) return null;
  if (presence.online) return strings.online;
  return presence.lastSeenAt ? strings.lastSeen(timeOf(presence.lastSeenAt, locale)) : strings.offline;
}
