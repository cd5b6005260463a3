import { Anchor, Button, Code, Group, Modal, Text } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { LogCaller, LogEntry, LogKind } from '@parley/protocol';
import { useEnv, usePages } from '../api/hooks.ts';
import { Id } from '../ui/copy.tsx';
import { Facts } from '../ui/facts.tsx';
import { FilterBar, FilterChoice, FilterText, useFilters } from '../ui/filter.tsx';
import { List } from '../ui/list.tsx';
import { Page } from '../ui/page.tsx';
import { Empty } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';

const filters = ['status', 'kind', 'caller', 'operation', 'userId', 'requestId', 'code'] as const;

/** Without the dashboard's own requests, which pages that are open make all the time, unless these are asked for. */
function callerOf({ caller, requestId }: { caller?: string; requestId?: string }): { caller?: LogCaller } {
  if (caller === undefined) return requestId === undefined ? { caller: 'app' } : {};
  return caller === 'all' ? {} : { caller: caller as LogCaller };
}

export default function Logs(): ReactNode {
  const { kind, caller, ...texts } = useFilters(filters);
  const input = {
    limit: 50,
    ...texts,
    ...(kind === undefined ? {} : { kind: kind as LogKind }),
    ...callerOf({ ...(caller === undefined ? {} : { caller }), ...texts }),
  };
  const pages = usePages('logs.list', input, { everyMs: 5_000 });
  const [shown, setShown] = useState<LogEntry | null>(null);
  return (
    <Page title="Logs" call={['logs.list', input]}>
      <FilterBar names={filters}>
        <FilterChoice
          name="status"
          label="Outcome"
          options={[
            ['', 'all'],
            ['error', 'all failures'],
            ['2xx', '2xx'],
            ['4xx', '4xx'],
            ['5xx', '5xx'],
          ]}
        />
        <FilterChoice
          name="kind"
          label="Kind"
          options={[
            ['', 'all'],
            ['request', 'requests'],
            ['socket', 'sockets'],
            ['webhook', 'webhooks'],
            ['hook', 'hooks'],
          ]}
        />
        <FilterChoice
          name="caller"
          label="By"
          options={[
            ['', 'your servers and clients'],
            ['server', 'your servers'],
            ['client', 'clients'],
            ['dashboard', 'the dashboard'],
            ['all', 'all callers'],
          ]}
        />
        <FilterText name="operation" label="Operation" placeholder="messages.send" />
        <FilterText name="userId" label="User" placeholder="alice" />
        <FilterText name="requestId" label="Request id" placeholder="req_…" />
      </FilterBar>
      <List
        what="log entries"
        pages={pages}
        rowKey={(entry) => entry.id}
        columns={[
          { title: 'Time', cell: (entry) => <Time at={entry.at} /> },
          {
            title: 'Operation',
            cell: (entry) => (
              <Anchor component="button" type="button" onClick={() => setShown(entry)} ta="left">
                <Code>{entry.operation ?? entry.kind}</Code>
              </Anchor>
            ),
          },
          { title: 'Outcome', cell: (entry) => <Outcome entry={entry} /> },
          { title: 'Duration', cell: (entry) => `${entry.durationMs} ms`, wide: true },
          { title: 'User', cell: (entry) => <UserLink id={entry.userId} />, wide: true },
          { title: 'By', cell: (entry) => entry.keyName ?? entry.callerId ?? entry.caller ?? '', wide: true },
        ]}
        empty={
          <Empty title="No entry matches">
            Requests, errors on sockets and webhook attempts of the last 7 days are kept, without their
            content.
          </Empty>
        }
      />
      <Modal opened={shown !== null} onClose={() => setShown(null)} title="Log entry" size="lg">
        {shown ? <Entry entry={shown} /> : null}
      </Modal>
    </Page>
  );
}

const failed = ({ status, code }: LogEntry): boolean => code !== null || (status !== null && status >= 400);

const Outcome = ({ entry }: { entry: LogEntry }): ReactNode => (
  <Text span size="sm" {...(failed(entry) ? { className: 'failed' } : {})}>
    {[entry.status, entry.code].filter((part) => part !== null).join(' ') || 'no answer'}
  </Text>
);

function UserLink({ id }: { id: string | null }): ReactNode {
  const env = useEnv();
  if (id === null) return null;
  return (
    <Anchor component={Link} href={`/${env}/users/${encodeURIComponent(id)}`}>
      {id}
    </Anchor>
  );
}

function Entry({ entry }: { entry: LogEntry }): ReactNode {
  const env = useEnv();
  const rows: [string, ReactNode][] = [
    ['Time', <Time at={entry.at} full />],
    ['Kind', entry.kind],
    ['Operation', entry.operation],
    ['Method', entry.method],
    ['Outcome', <Outcome entry={entry} />],
    ['Duration', `${entry.durationMs} ms`],
    ['Request', entry.requestId ? <Id id={entry.requestId} /> : null],
    ['Caller', [entry.caller, entry.keyName, entry.callerId].filter(Boolean).join(' ') || null],
    ['User', entry.userId === null ? null : <UserLink id={entry.userId} />],
    ['Session', entry.sessionId ? <Id id={entry.sessionId} /> : null],
    ['Address', entry.address],
    ['Delivery', entry.deliveryId ? <Id id={entry.deliveryId} /> : null],
  ];
  return (
    <>
      <Facts label="Log entry" of={rows.filter(([, value]) => value !== null)} />
      {entry.webhookId ? (
        <Group mt="md">
          <Button
            component={Link}
            href={`/${env}/webhooks/${entry.webhookId}`}
            variant="default"
            size="compact-sm"
          >
            To the endpoint
          </Button>
        </Group>
      ) : null}
    </>
  );
}
