import { Button, Group, Switch, Text, UnstyledButton } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { useEffect, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import { useSearchParams } from 'wouter';
import type { ReportCase } from '@parley/protocol';
import { usePages } from '../api/hooks.ts';
import { useNames } from '../api/names.ts';
import { useKeys } from '../ui/keys.ts';
import { FilterBar, FilterChoice, FilterText, useFilters } from '../ui/filter.tsx';
import { Avatar } from '../ui/people.tsx';
import { Empty, Failed, Loading } from '../ui/states.tsx';
import { Tag } from '../ui/tag.tsx';
import { Time } from '../ui/time.tsx';
import { CaseDetails } from './moderation-case.tsx';
import { countOf, reasonWords, saidIn, statusTones } from './moderation-words.ts';

const everyMs = 15_000;
const filters = ['status', 'targetUserId', 'conversationId'] as const;

/** What waits, one after the other, with the keyboard if one likes. */
export function Queue(): ReactNode {
  const { status = 'open', ...ids } = useFilters(filters);
  const wanted = status === 'all' ? {} : { status: status as ReportCase['status'] };
  const pages = usePages('reports.list', { limit: 25, ...wanted, ...ids }, { everyMs });
  return (
    <>
      <FilterBar names={filters}>
        <FilterChoice
          name="status"
          label="Reports"
          options={[
            ['', 'open'],
            ['resolved', 'resolved'],
            ['dismissed', 'dismissed'],
            ['all', 'all'],
          ]}
        />
        <FilterText name="targetUserId" label="About the user" placeholder="alice" />
        <FilterText name="conversationId" label="In the conversation" placeholder="conv_…" />
      </FilterBar>
      {pages.error && !pages.items ? (
        <Failed error={pages.error} retry={pages.refresh} />
      ) : !pages.items ? (
        <Loading what="reports" />
      ) : pages.items.length === 0 ? (
        <Empty title={status === 'open' ? 'No open reports' : 'No such reports'}>
          People report messages, users and conversations with <code>client.report()</code> or the React kit.
          Word lists can report, too.
        </Empty>
      ) : (
        <Desk items={pages.items} more={pages.more} loadingMore={pages.loadingMore} />
      )}
      {pages.error && pages.items ? <Failed error={pages.error} retry={pages.refresh} /> : null}
    </>
  );
}

function Desk(props: { items: ReportCase[]; more: (() => void) | null; loadingMore: boolean }): ReactNode {
  const { items } = props;
  const [params, setParams] = useSearchParams();
  const [said, setSaid] = useState('');
  const [keysOn, setKeysOn] = useLocalStorage({
    key: 'parley-moderation-keys',
    defaultValue: true,
    getInitialValueInEffect: false,
  });
  const nameOf = useNames(items.map(({ target }) => target.userId));
  const list = useRef<HTMLUListElement>(null);
  const id = params.get('id');
  const [kept, setKept] = useState(items[0]!);
  // What somebody else decided meanwhile stays until one goes on: keys must not act on another one.
  const shown = items.find((item) => item.id === id) ?? (kept.id === id ? kept : items[0]!);
  const at = items.indexOf(shown);
  const go = (to: number): void => {
    const next = items[Math.min(items.length - 1, Math.max(0, to))];
    if (next) choose(next.id);
  };
  const choose = (to: string): void =>
    setParams(
      (before) => {
        const next = new URLSearchParams(before);
        next.set('id', to);
        return next;
      },
      { replace: true },
    );
  useKeys(keysOn, { j: () => go(at + 1), k: () => go(at - 1) });
  useEffect(() => {
    setKept(shown);
    // New reports come above it.
    if (shown.id !== id) choose(shown.id);
  });
  useEffect(() => {
    list.current?.querySelector('[aria-current=true]')?.scrollIntoView({ block: 'nearest' });
  }, [shown.id]);
  /** The next one comes up by itself; the decided one leaves the list when it is read again. */
  const decided = (words: string): void => {
    setSaid(words);
    const next = items[at + 1] ?? items[at - 1];
    if (next && shown.status === 'open') choose(next.id);
  };
  return (
    <div className="desk">
      <div className="desk-queue">
        <Group justify="space-between" gap="xs" mb={6}>
          <Text size="sm" c="dimmed">
            {at < 0 ? 'Decided meanwhile' : `${at + 1} of ${items.length}${props.more ? ' and more' : ''}`}
          </Text>
          <Switch
            size="xs"
            className="desk-keys"
            label="Keys"
            checked={keysOn}
            onChange={(event) => setKeysOn(event.currentTarget.checked)}
          />
        </Group>
        <ul ref={list} aria-label="Reports, newest first">
          {items.map((item) => (
            <li key={item.id}>
              <Row
                item={item}
                name={item.target.userId === null ? null : nameOf(item.target.userId)}
                current={item === shown}
                choose={() => choose(item.id)}
              />
            </li>
          ))}
        </ul>
        {props.more ? (
          <Button
            variant="default"
            size="compact-sm"
            mt="xs"
            onClick={props.more}
            loading={props.loadingMore}
          >
            Show more
          </Button>
        ) : null}
        <Hints on={keysOn} />
      </div>
      <CaseDetails
        key={shown.id}
        of={shown}
        keysOn={keysOn}
        decided={decided}
        previous={at > 0 ? () => go(at - 1) : null}
        next={at < items.length - 1 ? () => go(at + 1) : null}
      />
      <span role="status" className="visually-hidden">
        {said}
      </span>
    </div>
  );
}

function Row(props: {
  item: ReportCase;
  name: string | null;
  current: boolean;
  choose: () => void;
}): ReactNode {
  const { item, name } = props;
  const { target, reports, reasons, lastAt, status } = item;
  return (
    <UnstyledButton className="desk-row" aria-current={props.current} onClick={props.choose}>
      {target.userId === null ? null : <Avatar id={target.userId} name={name!} small />}
      <span className="desk-said">
        <b dir="auto">{name ?? (target.kind === 'message' ? 'The system' : 'A conversation')}</b>
        <span dir="auto">{saidIn(item)}</span>
      </span>
      <span className="desk-facts">
        <Time at={lastAt} />
        {status === 'open' ? (
          <span>
            {countOf(reports)} · {reasonWords[reasons[0]!.reason]}
          </span>
        ) : (
          <Tag tone={statusTones[status]}>{status}</Tag>
        )}
      </span>
    </UnstyledButton>
  );
}

const hints: [key: string, what: string][] = [
  ['J', 'next'],
  ['K', 'previous'],
  ['D', 'delete'],
  ['S', 'silence'],
  ['B', 'ban'],
  ['R', 'resolve'],
  ['X', 'dismiss'],
];

const Hints = ({ on }: { on: boolean }): ReactNode =>
  on ? (
    <p className="desk-hints" aria-label="Keys">
      {hints.map(([key, what]) => (
        <span key={key}>
          <kbd>{key}</kbd> {what}
        </span>
      ))}
    </p>
  ) : null;
