import { memo, useEffect, useRef, useState } from 'react';
import type { RefObject } from 'react';
import type { ConversationListItem, User } from '@parley/client';
import { draftOf } from '../hooks/composer.ts';
import { useParley, useStrings } from '../hooks/context.ts';
import { otherOf, useName, usePresence, useTitle } from '../hooks/people.ts';
import { useSlot } from '../hooks/slots.ts';
import { shallowEqual, useStore } from '../hooks/store.ts';
import { useTypists } from '../hooks/typists.ts';
import { GroupAvatar, UserAvatar } from './avatar.tsx';
import { Icon } from './icon.tsx';
import { RowReceipt } from './receipt.tsx';
import { Time } from './time.tsx';

export interface ConversationItemProps {
  item: ConversationListItem;
  current?: boolean;
  tabIndex?: number;
  onSelect?: ((id: string) => void) | undefined;
  href?: string | undefined;
}

const same = (a: ConversationItemProps, b: ConversationItemProps): boolean =>
  shallowEqual({ ...a, item: null }, { ...b, item: null }) && shallowEqual(a.item, b.item);

/** One row of the list; renders when the conversation's row changes. */
export const ConversationItem = memo(function ConversationItem(props: ConversationItemProps) {
  const { item, current = false, tabIndex, onSelect, href } = props;
  const { client, strings } = useParley();
  const title = useTitle(item);
  const other = otherOf(item, client.userId);
  const online = usePresence([other]).get(other ?? '')?.online;
  const typists = useTypists(item.id);
  const Badge = useSlot('UnreadBadge', UnreadBadge);
  const row = useRef<HTMLElement>(null);
  const seen = useSeen(row);
  const { unreadCount, muted, lastMessage } = item;
  const attributes = {
    className: 'parley-conversation',
    'aria-current': current ? ('true' as const) : undefined,
    'data-unread': unreadCount > 0 || undefined,
    'data-muted': muted || undefined,
    'data-typing': typists.length > 0 || undefined,
    tabIndex,
    onClick: () => onSelect?.(item.id),
  };
  const content = (
    <>
      {other === null ? (
        <GroupAvatar conversationId={item.id} name={title} seen={seen} />
      ) : (
        <UserAvatar userId={other} presence />
      )}
      <b>
        <bdi>{title}</bdi>
      </b>
      {lastMessage ? <Time at={lastMessage.createdAt} day /> : <span />}
      {typists.length > 0 ? (
        <Typing userIds={typists} group={other === null} />
      ) : (
        <Preview item={item} draft={current ? '' : draftOf(client, item.id)} seen={seen} />
      )}
      {unreadCount > 0 ? (
        Badge && <Badge count={unreadCount} muted={muted} mentioned={!!item.mentionUnreadCount} />
      ) : muted ? (
        <span title={strings.muted}>
          <Icon name="muted" size={14} />
        </span>
      ) : null}
      {online ? <span className="parley-hidden">{strings.online}</span> : null}
    </>
  );
  return href === undefined ? (
    <button ref={row as RefObject<HTMLButtonElement>} type="button" {...attributes}>
      {content}
    </button>
  ) : (
    <a ref={row as RefObject<HTMLAnchorElement>} href={href} {...attributes}>
      {content}
    </a>
  );
}, same);

const noUsers: ReadonlyMap<string, User> = new Map();

function Typing({ userIds, group }: { userIds: readonly string[]; group: boolean }) {
  const { client, strings } = useParley();
  useStore(client.users.store, noUsers);
  return (
    <span className="parley-preview">
      {group ? strings.typing(userIds.map((id) => client.users.find(id)?.name || id)) : strings.typingHere}
    </span>
  );
}

interface PreviewProps {
  item: ConversationListItem;
  draft: string;
  seen: boolean;
}
function Preview({ item, draft, seen }: PreviewProps) {
  const { client, strings } = useParley();
  const last = item.lastMessage;
  const group = item.type === 'group';
  const name = useName(group ? last?.senderId : null);
  const files = last?.attachments;
  const text =
    last?.text || (files ? (files.mimeType.startsWith('image/') ? strings.photo : files.name) : '');
  const own = last !== null && last.senderId !== null && last.senderId === client.userId;
  return (
    <span className="parley-preview">
      {own && !draft ? <RowReceipt item={item} seen={seen} /> : null}
      <bdi>
        {draft
          ? strings.draft(draft)
          : own
            ? strings.fromYou(text)
            : group && last?.senderId != null
              ? strings.from(name, text)
              : text}
      </bdi>
    </span>
  );
}

/** Whether the row has been in view: what only rows in view need is not fetched for all of them. */
function useSeen(row: RefObject<HTMLElement | null>): boolean {
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    if (typeof IntersectionObserver === 'undefined') return setSeen(true);
    const observer = new IntersectionObserver((entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      setSeen(true);
      observer.disconnect();
    });
    observer.observe(row.current!);
    return () => observer.disconnect();
  }, [row]);
  return seen;
}

export interface UnreadBadgeProps {
  count: number;
  /** Above it the badge says "99+". */
  max?: number;
  muted?: boolean;
  /** Some of them mention this user. */
  mentioned?: boolean;
}
export function UnreadBadge({ count, max = 99, muted, mentioned }: UnreadBadgeProps) {
  const strings = useStrings();
  return (
    <span className="parley-unread" data-muted={(muted && !mentioned) || undefined}>
      <span aria-hidden="true" dir="ltr">
        {mentioned ? '@ ' : null}
        {count > max ? `${max}+` : count}
      </span>
      <span className="parley-hidden">
        {strings.unread(count)}
        {mentioned ? `, ${strings.mentioned}` : null}
      </span>
    </span>
  );
}
