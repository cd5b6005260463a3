import { Anchor, Code, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { usePages, useEnv } from '../api/hooks.ts';
import { FilterBar, FilterText, useFilter } from '../ui/filter.tsx';
import { List } from '../ui/list.tsx';
import { Page } from '../ui/page.tsx';
import { Empty, RequestId } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';

const exportFormats = [
  ['csv', 'CSV'],
  ['jsonl', 'JSON lines'],
] as const;

export default function Audit(): ReactNode {
  const env = useEnv();
  const [action] = useFilter('action');
  const [actor] = useFilter('actor');
  const input = {
    limit: 50,
    ...(env === null ? {} : { environmentId: env }),
    ...(action === '' ? {} : { action }),
    ...(actor === '' ? {} : { actor }),
  };
  const pages = usePages('audit.list', input);
  const query = new URLSearchParams(Object.entries(input).map(([name, value]) => [name, String(value)]));
  return (
    <Page
      title="Audit"
      call={['audit.list', input]}
      actions={exportFormats.map(([format, label]) => (
        <Anchor key={format} href={`/v1/audit?${query.toString()}&format=${format}`} download size="sm">
          Export as {label}
        </Anchor>
      ))}
    >
      <FilterBar names={['action', 'actor']}>
        <FilterText name="action" label="Action" placeholder="keys.create" />
        <FilterText name="actor" label="Actor" placeholder="ann@example.com" />
      </FilterBar>
      <List
        what="audit entries"
        pages={pages}
        rowKey={(entry) => entry.id}
        columns={[
          { title: 'Time', cell: (entry) => <Time at={entry.at} /> },
          { title: 'Actor', cell: (entry) => entry.actor },
          { title: 'Action', cell: (entry) => <Code>{entry.action}</Code> },
          { title: 'Target', cell: (entry) => entry.target ?? '', wide: true },
          {
            title: 'Change',
            cell: (entry) => <Change before={entry.changes.before} after={entry.changes.after} />,
            wide: true,
          },
          { title: 'From', cell: (entry) => entry.ip ?? 'command line', wide: true },
          { title: 'Request', cell: (entry) => <RequestId id={entry.requestId} />, wide: true },
        ]}
        empty={
          <Empty title="No changes yet">
            Every change through the dashboard or the command line is kept here.
          </Empty>
        }
      />
    </Page>
  );
}

const show = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

function Change({ before, after }: { before: object | null; after: object | null }): ReactNode {
  const was = (before ?? {}) as Record<string, unknown>;
  const is = (after ?? {}) as Record<string, unknown>;
  return [...new Set([...Object.keys(was), ...Object.keys(is)])].map((field) => (
    <Text key={field} size="sm" style={{ overflowWrap: 'anywhere' }}>
      {field}: {field in was ? <del>{show(was[field])}</del> : null}{' '}
      {field in is ? <ins>{show(is[field])}</ins> : null}
    </Text>
  ));
}
