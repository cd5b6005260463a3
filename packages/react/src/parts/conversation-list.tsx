import { forwardRef, Fragment, useEffect, useRef, useState } from 'react';
import type { ComponentPropsWithoutRef, KeyboardEvent, ReactNode, RefObject } from 'react';
import type { ConversationListItem } from '@parley/client';
import { useConnection } from '../hooks/connection.ts';
import { useParley } from '../hooks/context.ts';
import { useConversations } from '../hooks/conversations.ts';
import { otherOf } from '../hooks/people.ts';
import { useSlot } from '../hooks/slots.ts';
import { ConversationItem } from './conversation-item.tsx';
import { Icon } from './icon.tsx';
import { later } from './later.ts';
import type { LongListHandle, LongListProps } from './long-list.tsx';
import { Problem } from './problem.tsx';
import { cx, moveFocus, useFrame } from './tools.ts';

/** From so many rows on, only those near to what is seen are in the page. */
const longFrom = 200;
const Long = later<LongListProps>(
  () => import('./long-list.tsx'),
  // A screenful, until the rest can be shown.
  (props) => <Rows {...props} items={props.items.slice(0, 30)} />,
);

/** Conversations that stand together under a title. */
export interface Section {
  title: string;
  has: (item: ConversationListItem) => boolean;
}
const noSections: readonly Section[] = [];

export interface ConversationListProps extends Omit<
  ComponentPropsWithoutRef<'nav'>,
  'onSelect' | 'children'
> {
  selectedId?: string | null;
  onSelect?: (id: string) => void;
  /** The address of a conversation; rows are then links. */
  href?: (item: ConversationListItem) => string;
  filter?: (item: ConversationListItem) => boolean;
  /** By last activity unless given. */
  sort?: (a: ConversationListItem, b: ConversationListItem) => number;
  /** A conversation stands in the first section that has it; those that none has come last, without a title. */
  sections?: readonly Section[] | undefined;
  /** Buttons beside the title. */
  actions?: ReactNode;
  renderEmpty?: () => ReactNode;
}

export const ConversationList = forwardRef<HTMLElement, ConversationListProps>(
  function ConversationList(props, ref) {
    const { selectedId = null, onSelect, href, filter, sort, sections = noSections, ...others } = props;
    const { actions, renderEmpty, className, ...rest } = others;
    const { client, strings, shortcuts } = useParley();
    const search = useRef<HTMLInputElement>(null);
    const typed = useRef({ text: '', at: 0 });
    useSlash(search, shortcuts);
    const { items, hasMore, error, loadMore } = useConversations();
    const long = useRef<LongListHandle>(null);
    const Item = useSlot('ConversationItem', ConversationItem) ?? ConversationItem;
    const { state, retry } = useConnection();
    const [failed, setFailed] = useState(false);
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
    if (sort) shown.sort(sort);
    const sectionOf = (item: ConversationListItem | undefined): number => {
      const at = sections.findIndex(({ has }) => item && has(item));
      return at < 0 ? sections.length : at;
    };
    if (sections.length > 0) shown.sort((a, b) => sectionOf(a) - sectionOf(b));
    const titleOf = (at: number): ReactNode => {
      const section = sectionOf(shown[at]);
      if (at > 0 && section === sectionOf(shown[at - 1])) return null;
      const title = sections[section]?.title;
      return title === undefined ? null : (
        <li className="parley-section">
          <h3>{title}</h3>
        </li>
      );
    };
    const onKeyDown = (event: KeyboardEvent<HTMLUListElement>): void => {
      const rows = [...event.currentTarget.querySelectorAll<HTMLElement>('.parley-conversation')];
      if (moveFocus(event, rows, false)) return event.preventDefault();
      // Letters go to the next conversation whose name begins with them.
      if (!shortcuts || event.key.length !== 1 || event.key === ' ' || event.key === '/') return;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const { text, at } = typed.current;
      const letters = (event.timeStamp - at < typeAheadMs ? text : '') + event.key.toLocaleLowerCase();
      typed.current = { text: letters, at: event.timeStamp };
      const first = Number(event.currentTarget.dataset['from'] ?? 0);
      const from = first + rows.indexOf(event.target as HTMLElement) + (letters.length > 1 ? 0 : 1);
      for (let i = 0; i < shown.length; i++) {
        const index = (from + i) % shown.length;
        if (!nameOf(shown[index]!).toLocaleLowerCase().startsWith(letters)) continue;
        if (long.current) long.current.focus(index);
        else rows[index]?.focus();
        break;
      }
    };
    const current = Math.max(
      0,
      shown.findIndex((item) => item.id === selectedId),
    );
    const List = shown.length >= longFrom ? Long : Rows;
    const none = items.length === 0;
    const refused = none && state === 'failed';
    const loading = none && state !== 'connected' && !refused;
    const missing = none && !loading && !refused && error !== undefined;
    const more = (): void => {
      setFailed(false);
      loadMore().catch(() => setFailed(true));
    };
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
            ref={search}
            type="search"
            value={query}
            placeholder={strings.search}
            aria-label={strings.search}
            onChange={(event) => setQuery(event.target.value)}
          />
          {shortcuts && query === '' ? <kbd aria-hidden="true">/</kbd> : null}
        </label>
        {loading ? (
          <div className="parley-skeleton" aria-hidden="true">
            {[1, 2, 3, 4, 5, 6].map((row) => (
              <i key={row} />
            ))}
          </div>
        ) : null}
        {refused ? <Problem text={strings.refused} onRetry={retry} /> : null}
        {shown.length === 0 && !loading && !refused && !missing && !failed ? (
          <div className="parley-empty">
            {wanted ? strings.noMatch : (renderEmpty?.() ?? strings.noConversations)}
          </div>
        ) : null}
        <List
          items={shown}
          current={current}
          titleOf={titleOf}
          row={(item, tabStop) => (
            <Item
              item={item}
              current={item.id === selectedId}
              tabIndex={tabStop ? 0 : -1}
              onSelect={onSelect}
              href={href?.(item)}
            />
          )}
          onKeyDown={onKeyDown}
          handle={long}
        />
        {failed || missing ? (
          <Problem text={missing ? strings.firstNotLoaded : strings.notLoaded} onRetry={more} />
        ) : hasMore ? (
          <button type="button" className="parley-more" onClick={more}>
            {strings.loadMore}
          </button>
        ) : null}
      </nav>
    );
  },
);

const Rows = ({ items, current, titleOf, row, onKeyDown }: LongListProps) => (
  <ul onKeyDown={onKeyDown}>
    {items.map((item, at) => (
      <Fragment key={item.id}>
        {titleOf(at)}
        <li>{row(item, at === current)}</li>
      </Fragment>
    ))}
  </ul>
);

const typeAheadMs = 800;

/** The slash goes to the search, unless somebody writes. */
function useSlash(search: RefObject<HTMLInputElement | null>, on: boolean): void {
  useEffect(() => {
    if (!on) return;
    const listen = (event: globalThis.KeyboardEvent): void => {
      const target = event.target as HTMLElement;
      if (event.key !== '/' || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey)
        return;
      if (target.isContentEditable || /INPUT|TEXTAREA|SELECT/.test(target.tagName)) return;
      // A list that is hidden, as beside a thread on a phone, leaves the key to others.
      if (search.current?.offsetParent == null) return;
      event.preventDefault();
      search.current.focus();
    };
    document.addEventListener('keydown', listen);
    return () => document.removeEventListener('keydown', listen);
  }, [search, on]);
}
