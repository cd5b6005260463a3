import { Anchor, Stack, Text, Title } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { Overview as OverviewRecord, StorageRecord } from '@parley/protocol';
import { useCall, useEnv } from '../api/hooks.ts';
import { useEnvironment } from '../api/roles.ts';
import { MirroredBars } from '../ui/chart.tsx';
import { Numbers } from '../ui/numbers.tsx';
import { Page, Section } from '../ui/page.tsx';
import { percent, plain } from '../ui/figures.ts';
import { Failed, Loading } from '../ui/states.tsx';
import { clock, Time } from '../ui/time.tsx';
import { needsOf, sentenceOf } from './needs.ts';
import { QuickStart } from './quick-start.tsx';

export default function Overview(): ReactNode {
  const overview = useCall('overview.get', {}, { everyMs: 5_000 });
  const sink = useCall('storage.get', {}, { everyMs: 30_000 }).data?.sink;
  const name = useEnvironment()?.name;
  const has = overview.data?.has;
  // A user who saw the first step of the quick start also sees the last one.
  const [began, setBegan] = useState(false);
  if (has && !has.messages && !began) setBegan(true);
  const needs = overview.data ? needsOf(overview.data, sink) : [];
  return (
    <Page
      title={overview.data ? sentenceOf(overview.data, needs) : 'Overview'}
      about={
        overview.data ? (
          <>
            {name} · the last hour, refreshed <Time at={overview.data.at} />
          </>
        ) : undefined
      }
      call={['overview.get', {}]}
    >
      {has && began ? <QuickStart arrived={has.messages} /> : null}
      {overview.error ? (
        <Failed error={overview.error} retry={() => void overview.refetch()} />
      ) : overview.data ? (
        <Now overview={overview.data} sink={sink} needs={needs} />
      ) : (
        <Loading what="the overview" />
      )}
    </Page>
  );
}

const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);

function Now(props: {
  overview: OverviewRecord;
  sink: StorageRecord['sink'] | undefined;
  needs: ReturnType<typeof needsOf>;
}): ReactNode {
  const env = useEnv();
  const { overview, sink, needs } = props;
  const { webhooks, series } = overview;
  const requests = sum(series.map((step) => step.requests));
  const errors = sum(series.map((step) => step.errors));
  const peak = series.reduce((most, step) => (step.messages > most.messages ? step : most), series[0]!);
  return (
    <Stack gap="lg">
      <Numbers
        label="Right now"
        of={[
          {
            label: 'Open connections',
            href: `/${env}/live`,
            value: overview.connections,
            note: 'sockets on all nodes',
          },
          {
            label: 'Messages per second',
            href: `/${env}/analytics`,
            value: plain(overview.messagesPerSecond, 1),
            note:
              peak.messages === 0
                ? 'none in the last hour'
                : `peak: ${plain(peak.messages)} in the minute at ${clock(peak.t)}`,
          },
          {
            label: 'Failed requests',
            href: `/${env}/logs?status=error`,
            value: requests === 0 ? '–' : percent(errors / requests, 2),
            note:
              requests === 0
                ? 'no requests in the last hour'
                : `${plain(errors)} of ${plain(requests)} in the last hour`,
          },
          {
            label: 'Webhooks',
            href: `/${env}/webhooks`,
            value:
              webhooks.endpoints === 0
                ? 'none'
                : `${webhooks.endpoints - webhooks.failing - webhooks.disabled} of ${webhooks.endpoints}`,
            note:
              webhooks.endpoints === 0
                ? 'your server gets no events'
                : `healthy; ${webhooks.succeeded} events delivered, ${webhooks.pending} waiting`,
          },
          {
            label: 'Storage',
            href: `/${env}/storage`,
            value: sink && (sink.status === 'idle' ? 'managed' : sink.status),
            note:
              sink === undefined || sink.status === 'idle'
                ? 'this service keeps the history'
                : `your database, ${Math.round(sink.lagSeconds)} s behind`,
          },
        ]}
      />
      <div className="two needs-first">
        <Section title="The last hour">
          <MirroredBars
            title="Messages and requests"
            unit="per minute"
            rows={series}
            step={clock}
            up={{ label: 'messages', value: (step) => step.messages }}
            down={{ label: 'requests', value: (step) => step.requests }}
          />
        </Section>
        <Section title="Needs attention">
          {needs.length === 0 ? (
            <Text c="dimmed">Nothing. This list shows problems of endpoints, storage and requests.</Text>
          ) : (
            <Stack className="needs" gap="md">
              {needs.map((need) => (
                <div key={need.title}>
                  <Title order={3} size="h4">
                    {need.title}
                  </Title>
                  <Text c="dimmed" size="sm">
                    {need.text}
                  </Text>
                  <Anchor component={Link} href={`/${env}${need.path}`}>
                    {need.action}
                  </Anchor>
                </div>
              ))}
            </Stack>
          )}
        </Section>
      </div>
    </Stack>
  );
}
