import { Stack } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { Overview as OverviewRecord } from '@parley/protocol';
import { useCall, useEnv } from '../api/hooks.ts';
import { useEnvironment } from '../api/roles.ts';
import { Chart } from '../ui/chart.tsx';
import { Numbers } from '../ui/numbers.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Failed, Loading } from '../ui/states.tsx';
import { clock } from '../ui/time.tsx';
import { QuickStart } from './quick-start.tsx';

export default function Overview(): ReactNode {
  const overview = useCall('overview.get', {}, { everyMs: 5_000 });
  const has = overview.data?.has;
  // Whoever saw it begin sees the end of it.
  const [began, setBegan] = useState(false);
  if (has && !has.messages && !began) setBegan(true);
  return (
    <Page title={useEnvironment()?.name ?? 'Overview'} call={['overview.get', {}]}>
      {overview.error ? (
        <Failed error={overview.error} retry={() => void overview.refetch()} />
      ) : overview.data ? (
        <Now overview={overview.data} />
      ) : (
        <Loading what="the overview" />
      )}
      {has && began ? <QuickStart arrived={has.messages} /> : null}
    </Page>
  );
}

const perSecond = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });

function Now({ overview }: { overview: OverviewRecord }): ReactNode {
  const env = useEnv();
  const { webhooks, series } = overview;
  const sink = useCall('storage.get', {}, { everyMs: 30_000 }).data?.sink;
  const socketErrors = series.reduce((sum, step) => sum + step.socketErrors, 0);
  const serverErrors = series.reduce((sum, step) => sum + step.serverErrors, 0);
  return (
    <Stack>
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
            value: perSecond.format(overview.messagesPerSecond),
            note: 'in the last minute',
          },
          {
            label: 'Failed requests',
            href: `/${env}/logs?status=error`,
            value: `${perSecond.format(overview.errorsPerSecond)}/s`,
            note: `${serverErrors} server errors, ${socketErrors} on sockets in the last hour`,
          },
          {
            label: 'Webhooks',
            href: `/${env}/webhooks`,
            value:
              webhooks.endpoints === 0
                ? 'none'
                : webhooks.failing + webhooks.disabled === 0
                  ? 'healthy'
                  : `${webhooks.failing + webhooks.disabled} of ${webhooks.endpoints} fail`,
            note: `${webhooks.succeeded} delivered, ${webhooks.failed} failed, ${webhooks.pending} waiting`,
          },
          {
            label: 'Storage',
            href: `/${env}/storage`,
            value: sink && (sink.status === 'idle' ? 'with this service' : sink.status),
            note:
              sink === undefined || sink.status === 'idle'
                ? 'history'
                : `${Math.round(sink.lagSeconds)} s behind`,
          },
        ]}
      />
      <Section title="The last hour">
        <Chart
          title="Per minute"
          rows={series}
          step={clock}
          lines={[
            { label: 'requests', value: (step) => step.requests, tone: 1 },
            { label: 'messages', value: (step) => step.messages, tone: 2 },
            { label: 'errors', value: (step) => step.errors, tone: 3 },
          ]}
        />
      </Section>
    </Stack>
  );
}
