import { Alert, Anchor, Group, SimpleGrid, Table, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { AnalyticsReport } from '@parley/protocol';
import { addressOf } from '../api/address.ts';
import { useCall, useEnv } from '../api/hooks.ts';
import { Lines } from '../ui/chart.tsx';
import type { ChartLine } from '../ui/chart.tsx';
import { FilterBar, FilterChoice, useFilter } from '../ui/filter.tsx';
import { List, rows } from '../ui/list.tsx';
import { Numbers } from '../ui/numbers.tsx';
import type { Figure } from '../ui/numbers.tsx';
import { Page, Section } from '../ui/page.tsx';
import { compact, percent, plain } from '../ui/figures.ts';
import { rangeInput, RangeChoice } from '../ui/range.tsx';
import { Empty, Failed, Loading } from '../ui/states.tsx';
import { dayOrHour, Time } from '../ui/time.tsx';

type Step = AnalyticsReport['series'][number];

const charts: Record<string, [title: string, lines: ChartLine<Step>[]]> = {
  '': [
    'Messages and people',
    [
      { label: 'messages', value: (step) => step.messages, tone: 1 },
      { label: 'active users', value: (step) => step.activeUsers, tone: 2 },
    ],
  ],
  connections: [
    'Connections',
    [
      { label: 'most at once', value: (step) => step.peakConnections, tone: 1 },
      { label: 'opened', value: (step) => step.socketsOpened, tone: 2 },
    ],
  ],
  requests: [
    'Requests',
    [
      { label: 'all', value: (step) => step.apiRequests, tone: 1 },
      { label: 'refused (4xx)', value: (step) => step.requests4xx, tone: 2 },
      { label: 'failed (5xx)', value: (step) => step.requests5xx, tone: 3 },
    ],
  ],
  speed: [
    'Milliseconds',
    [
      { label: 'until the ack', value: (step) => step.avgAckMs, tone: 1 },
      { label: 'until written to all', value: (step) => step.avgFanoutMs, tone: 2 },
    ],
  ],
  deliveries: [
    'Webhooks and pushes',
    [
      { label: 'webhook deliveries', value: (step) => step.webhookDeliveries, tone: 1 },
      { label: 'pushes sent', value: (step) => step.pushSent, tone: 2 },
      { label: 'pushes refused', value: (step) => step.pushFailed, tone: 3 },
    ],
  ],
  calls: [
    'Calls',
    [
      { label: 'started', value: (step) => step.calls, tone: 1 },
      { label: 'answered', value: (step) => step.callsAnswered, tone: 2 },
      { label: 'missed', value: (step) => step.callsMissed, tone: 3 },
    ],
  ],
};

export default function Analytics(): ReactNode {
  const [range] = useFilter('range');
  const input = rangeInput(range);
  const report = useCall('analytics.get', input, { everyMs: 30_000 });
  const env = useEnv();
  return (
    <Page
      title="Analytics"
      call={['analytics.get', input]}
      actions={
        <Anchor href={addressOf('analytics.get', { ...input, format: 'csv' }, env)} download size="sm">
          CSV
        </Anchor>
      }
    >
      <FilterBar names={['range', 'chart']}>
        <RangeChoice />
        <FilterChoice
          name="chart"
          label="Chart"
          options={Object.entries(charts).map(([value, [title]]) => [value, title])}
        />
      </FilterBar>
      {report.error ? (
        <Failed error={report.error} retry={() => void report.refetch()} />
      ) : report.data ? (
        <Report report={report.data} />
      ) : (
        <Loading what="the figures" />
      )}
    </Page>
  );
}

/** Where there is nothing to count. */
const none = '–';

const figures = ({ totals, plan }: AnalyticsReport): Figure[] => [
  { label: 'Messages', value: compact(totals.messages) },
  {
    label: 'Active users',
    value: compact(totals.activeUsers),
    note: 'sent, read, connected or joined a call',
  },
  { label: 'New users', value: compact(totals.newUsers) },
  {
    label: 'Active this month',
    value: compact(totals.mauThisMonth),
    note: plan.mauLimit === null ? 'no limit' : `of ${compact(plan.mauLimit)} on the plan ${plan.name}`,
  },
  { label: 'Peak connections', value: compact(totals.peakConnections) },
  {
    label: 'Successful webhook attempts',
    value: totals.webhookDeliveries === 0 ? none : percent(totals.webhookSuccessRate),
    note: totals.webhookDeliveries === 0 ? 'no attempts in this range' : undefined,
  },
  {
    label: 'Time to the ack',
    value: totals.avgAckMs === 0 ? none : `${plain(totals.avgAckMs)} ms`,
    note: totals.avgAckMs === 0 ? 'nothing was sent on a socket' : 'mean, on the socket',
  },
  {
    label: 'Call minutes',
    value: compact(totals.callMinutes),
    note:
      totals.calls === 0
        ? 'no calls in this range'
        : `${totals.calls === 1 ? 'one call' : `${plain(totals.calls)} calls`}, ${percent(totals.callAnswerRate)} answered`,
  },
];

function Report({ report }: { report: AnalyticsReport }): ReactNode {
  const [chart] = useFilter('chart');
  const [title, lines] = charts[chart] ?? charts['']!;
  return (
    <>
      {report.filling ? (
        <Alert color="blue" variant="light" role="status">
          Older data is still being counted: {percent(report.filling.progress)} done.
        </Alert>
      ) : null}
      <Numbers label="Totals" of={figures(report)} />
      <Lines title={title} rows={report.series} lines={lines} step={dayOrHour(report.range.granularity)} />
      <Heatmap of={report.heatmap} />
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
        <TopConversations of={report.topConversations} />
        <TopSenders of={report.topSenders} />
      </SimpleGrid>
    </>
  );
}

const weekdays = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];

/** Messages by weekday and hour: the darker, the more; every cell says its number. */
function Heatmap({ of }: { of: number[][] }): ReactNode {
  const most = Math.max(1, ...of.flat());
  return (
    <Section title="When messages are sent (UTC)">
      <div className="scroll" tabIndex={0} role="region" aria-label="Messages by weekday and hour">
        <Table className="heatmap" withRowBorders={false} horizontalSpacing={2} verticalSpacing={2}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Day</Table.Th>
              {Array.from({ length: 24 }, (_, hour) => (
                <Table.Th key={hour}>{hour}</Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {weekdays.map((day, row) => (
              <Table.Tr key={day}>
                <Table.Th scope="row">{day}</Table.Th>
                {of[row]!.map((count, hour) => (
                  <Table.Td
                    key={hour}
                    title={`${day}, ${hour}:00: ${count === 1 ? 'one message' : `${plain(count)} messages`}`}
                    className={`heat-${Math.ceil((count / most) * 4)}`}
                  >
                    {count === 0 ? '' : compact(count)}
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </div>
    </Section>
  );
}

function TopConversations({ of }: { of: AnalyticsReport['topConversations'] }): ReactNode {
  const env = useEnv();
  return (
    <Section title="Busiest conversations">
      <List
        what="busiest conversations"
        pages={rows(of)}
        rowKey={(row) => row.id}
        columns={[
          {
            title: 'Conversation',
            cell: (row) => (
              <Anchor component={Link} href={`/${env}/conversations/${row.id}`}>
                {row.name ?? row.id}
              </Anchor>
            ),
          },
          { title: 'Messages', cell: (row) => row.messages },
          { title: 'Senders', cell: (row) => row.senders, wide: true },
          { title: 'Last', cell: (row) => <Time at={row.lastAt} />, wide: true },
        ]}
        empty={<Empty title="No messages in this range" />}
      />
    </Section>
  );
}

function TopSenders({ of }: { of: AnalyticsReport['topSenders'] }): ReactNode {
  const env = useEnv();
  return (
    <Section title="Most active users">
      <List
        what="senders"
        pages={rows(of)}
        rowKey={(row) => row.userId}
        columns={[
          {
            title: 'User',
            cell: (row) => (
              <Group gap="xs">
                <Anchor component={Link} href={`/${env}/users/${encodeURIComponent(row.userId)}`}>
                  {row.name ?? row.userId}
                </Anchor>
                {row.name === null ? null : (
                  <Text size="xs" c="dimmed">
                    {row.userId}
                  </Text>
                )}
              </Group>
            ),
          },
          { title: 'Messages', cell: (row) => row.messages },
        ]}
        empty={<Empty title="No messages in this range" />}
      />
    </Section>
  );
}
