import { forwardRef, memo, useState } from 'react';
import type { ComponentPropsWithoutRef, KeyboardEvent, ReactNode } from 'react';
import type { ConversationListItem } from '@parley/client';
import { draftOf } from '../hooks/composer.ts';
import { useConnection } from '../hooks/connection.ts';
import { useParley, useStrings } from '../hooks/context.ts';
import { useConversations } from '../hooks/conversations.ts';
import { otherOf, useName, useTitle } from '../hooks/people.ts';
import { shallowEqual } from '../hooks/store.ts';
import { Avatar, UserAvatar } from './avatar.tsx';
import { Icon } from './icon.tsx';
import { Time } from './time.tsx';
import { cx, moveFocus, useFrame } from './tools.ts';

export interface ConversationListProps extends Omit<
  ComponentPropsWithoutRef<'nav'>,
  'onSelect' | 'children'
> {
  selectedId?: string | null;
  onSelect?: (id: string) => void;
  /** The address of a conversation; rows are then links. */
  href?: (item: ConversationListItem) => string;
  filter?: (item: ConversationListItem) => boolean;
  /** Buttons beside the title. */
  actions?: ReactNode;
  renderEmpty?: () => ReactNode;
}

export const ConversationList = forwardRef<HTMLElement, ConversationListProps>(
  function ConversationList(props, ref) {
    const { selectedId = null, onSelect, href, filter, actions, renderEmpty, className, ...rest } = props;
    const { client, strings } = useParley();
    const { items, hasMore, loadMore } = useConversations();
    const { state } = useConnection();
    const [query, setQuery] = useState('');
    const wanted = query.trim().toLocaleLowerCase();
    // A name that is not known yet is fetched by its row, and looked through when it is there.
    const nameOf = (item: ConversationListItem): string => {
      const other = otherOf(item, client.userId);
      return item.name || (other === null ? '' : client.users.store.get().get(other)?.name || other);
    };
    const shown = items.filter(
      (item) => (!filter || filter(item)) && nameOf(item).toLocaleLowerCase().includes(wanted),
    );
    const onKeyDown = (event: KeyboardEvent<HTMLUListElement>): void => {
      if (
        moveFocus(
          event,
          [...event.currentTarget.querySelectorAll<HTMLElement>('.parley-conversation')],
          false,
        )
      )
        event.preventDefault();
    };
    const tabStop = shown.some((item) => item.id === selectedId) ? selectedId : shown[0]?.id;
    const loading = items.length === 0 && state !== 'connected' && state !== 'failed';
    return (
      <nav
        ref={ref}
        className={cx('parley-list', className)}
        aria-label={strings.chats}
        {...useFrame()}
        {...rest}
      >
        <div className="parley-list-head">
          <h2>{strings.chats}</h2>
          {actions}
        </div>
        <label className="parley-search">
          <Icon name="search" size={15} />
          <input
            type="search"
            value={query}
            placeholder={strings.search}
            aria-label={strings.search}
            onChange={(event) => setQuery(event.target.value)}
          />
        </label>
        {loading ? (
          <div className="parley-skeleton" aria-hidden="true">
            {[1, 2, 3, 4, 5, 6].map((row) => (
              <i key={row} />
            ))}
          </div>
        ) : null}
        {shown.length === 0 && !loading ? (
          <div className="parley-empty">
            {wanted ? strings.noMatch : (renderEmpty?.() ?? strings.noConversations)}
          </div>
        ) : null}
        <ul onKeyDown={onKeyDown}>
          {shown.map((item) => (
            <li key={item.id}>
              <ConversationItem
                item={item}
                current={item.id === selectedId}
                tabIndex={item.id === tabStop ? 0 : -1}
                {...(onSelect ? { onSelect } : {})}
                {...(href ? { href: href(item) } : {})}
              />
            </li>
          ))}
        </ul>
        {hasMore ? (
          <button
            type="button"
            className="parley-more"
            onClick={() => void loadMore().catch(() => undefined)}
          >
            {strings.loadMore}
          </button>
        ) : null}
      </nav>
    );
  },
);

export interface ConversationItemProps {
  item: ConversationListItem;
  current?: boolean;
  tabIndex?: number;
  onSelect?: (id: string) => void;
  href?: string;
}

const same = (a: ConversationItemProps, b: ConversationItemProps): boolean =>
  shallowEqual({ ...a, item: null }, { ...b, item: null }) && shallowEqual(a.item, b.item);

/** One row of the list; renders when the conversation's row changes. */
export const ConversationItem = memo(function ConversationItem(props: ConversationItemProps) {
  const { item, current = false, tabIndex, onSelect, href } = props;
  const { client, strings } = useParley();
  const title = useTitle(item);
  const other = otherOf(item, client.userId);
  const { unreadCount, muted, lastMessage } = item;
  const attributes = {
    className: 'parley-conversation',
    'aria-current': current ? ('true' as const) : undefined,
    'data-unread': unreadCount > 0 || undefined,
    'data-muted': muted || undefined,
    tabIndex,
    onClick: () => onSelect?.(item.id),
  };
  const content = (
    <>
      {other === null ? <Avatar id={item.id} name={title} /> : <UserAvatar userId={other} presence />}
      <b>
        <bdi>{title}</bdi>
      </b>
      {lastMessage ? <Time at={lastMessage.createdAt} day /> : <span />}
      <Preview item={item} draft={current ? '' : draftOf(client, item.id)} />
      {unreadCount > 0 ? (
        <UnreadBadge count={unreadCount} muted={muted} />
      ) : muted ? (
        <span title={strings.muted}>
          <Icon name="muted" size={14} />
        </span>
      ) : null}
    </>
  );
  return href === undefined ? (
    <button type="button" {...attributes}>
      {content}
    </button>
  ) : (
    <a href={href} {...attributes}>
      {content}
    </a>
  );
}, same);

function Preview({ item, draft }: { item: ConversationListItem; draft: string }) {
  const { client, strings } = useParley();
  const last = item.lastMessage;
  const group = item.type === 'group';
  const name = useName(group ? last?.senderId : null);
  const files = last?.attachments;
  const text =
    last?.text || (files ? (files.mimeType.startsWith('image/') ? strings.photo : files.name) : '');
  return (
    <span className="parley-preview">
      <bdi>
        {draft
          ? strings.draft(draft)
          : last && last.senderId === client.userId
            ? strings.fromYou(text)
            : group && last?.senderId != null
              ? strings.from(name, text)
              : text}
      </bdi>
    </span>
  );
}

export function UnreadBadge({ count, max = 99, muted }: { count: number; max?: number; muted?: boolean }) {
  const strings = useStrings();
  return (
    <span className="parley-unread" data-muted={muted || undefined}>
      <span aria-hidden="true">{count > max ? `${max}+` : count}</span>
      <span className="parley-hidden">{strings.unread(count)}</span>
    </span>
  );
}
