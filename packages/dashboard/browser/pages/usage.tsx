import { Progress, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import type { UsageReport } from '@parley/protocol';
import { useCall, useRows } from '../api/hooks.ts';
import { FilterBar, useFilter } from '../ui/filter.tsx';
import { List } from '../ui/list.tsx';
import { Page, Section } from '../ui/page.tsx';
import { rangeInput, RangeChoice } from '../ui/range.tsx';
import { Empty, Failed, Loading } from '../ui/states.tsx';
import { dayOrHour } from '../ui/time.tsx';

export default function Usage(): ReactNode {
  const [range] = useFilter('range');
  const input = rangeInput(range);
  const usage = useCall('usage.get', input, { everyMs: 30_000 });
  const rows = useRows('usage.get', input);
  const newestOfMonth = new Map(rows.items?.map(({ date }) => [date.slice(0, 7), date]));
  return (
    <Page title="Usage and plan" call={['usage.get', input]}>
      {usage.error ? (
        <Failed error={usage.error} retry={() => void usage.refetch()} />
      ) : usage.data ? (
        <Plan usage={usage.data} />
      ) : (
        <Loading what="usage" />
      )}
      <FilterBar names={['range']}>
        <RangeChoice />
      </FilterBar>
      <List
        what="usage"
        pages={{ ...rows, items: rows.items?.toReversed() }}
        rowKey={(row) => row.date}
        columns={[
          { title: 'Day', cell: (row) => dayOrHour(input.granularity)(row.date) },
          {
            title: 'Active in the month',
            // A figure of the whole month: it stands once, at the month's latest step.
            cell: (row) => (newestOfMonth.get(row.date.slice(0, 7)) === row.date ? row.mau : ''),
          },
          { title: 'Peak connections', cell: (row) => row.peakConnections },
          { title: 'Messages', cell: (row) => row.messages },
          { title: 'Requests', cell: (row) => row.apiRequests, wide: true },
          { title: 'Webhooks', cell: (row) => row.webhookDeliveries, wide: true },
          { title: 'Pushes', cell: (row) => row.pushSent, wide: true },
        ]}
        empty={<Empty title="No data in this range" />}
      />
    </Page>
  );
}

function Plan({ usage: { plan, data } }: { usage: UsageReport }): ReactNode {
  const last = data.at(-1);
  return (
    <Section title={`The plan ${plan.name}`}>
      <Stack gap="md" maw={560}>
        <Share
          label="Active users this month"
          used={last?.mau ?? 0}
          limit={plan.mauLimit}
          note="Distinct users who sent, read, connected or joined a call in the calendar month (UTC). Above the limit, active users continue; other users wait for the next month."
        />
        <Share
          label="Peak connections, in the latest row"
          used={last?.peakConnections ?? 0}
          limit={plan.connectionLimit}
          note="Open sockets on all nodes. Above the limit, a new socket is refused with a time to try again."
        />
        <Text size="sm" c="dimmed">
          The operator of this service changes the plan.
        </Text>
      </Stack>
    </Section>
  );
}

const Share = (props: { label: string; used: number; limit: number | null; note: string }): ReactNode => (
  <Stack gap={4}>
    <Text size="sm" fw={600}>
      {props.label}: {props.used} {props.limit === null ? '(no limit)' : `of ${props.limit}`}
    </Text>
    {props.limit === null ? null : (
      <Progress value={Math.min(100, (props.used / props.limit) * 100)} aria-label={props.label} />
    )}
    <Text size="xs" c="dimmed">
      {props.note}
    </Text>
  </Stack>
);
