import { Alert, Group, NativeSelect, Progress, Radio, SimpleGrid, Stack, Text } from '@mantine/core';
import HereIcon from 'lucide-react/icons/hard-drive';
import TheirsIcon from 'lucide-react/icons/database';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { StorageRecord } from '@parley/protocol';
import { useCall, useChange } from '../api/hooks.ts';
import { useMay, useProductionName } from '../api/roles.ts';
import { ConfirmButton } from '../ui/confirm.tsx';
import { Icon } from '../ui/icon.tsx';
import { Numbers } from '../ui/numbers.tsx';
import { Page, Section } from '../ui/page.tsx';
import { compact, plain } from '../ui/figures.ts';
import { Failed, Loading } from '../ui/states.tsx';
import { Tag } from '../ui/tag.tsx';
import { Time } from '../ui/time.tsx';
import { Migrate, Slot } from './storage-database.tsx';
import { Media } from './storage-media.tsx';

export default function Storage(): ReactNode {
  const storage = useCall('storage.get', {}, { everyMs: 5_000 });
  if (storage.error) return <Failed error={storage.error} retry={() => void storage.refetch()} />;
  if (!storage.data) return <Loading what="the storage" />;
  const { data } = storage;
  return (
    <Page title={titleOf(data)} about={aboutOf(data)} call={['storage.get', {}]}>
      {data.sink.error === null ? null : (
        <Alert color="red" variant="light" role="alert" title="Your database refuses writes">
          {data.sink.error} {data.sink.backlog} changes wait with this service; none is lost.
        </Alert>
      )}
      <Ways storage={data} />
      <Delivery storage={data} />
      <Section title="Connections">
        <Text c="dimmed">
          There are two slots, so that you can change credentials without a gap: set the slot that is not in
          use, test it, then promote it.
          {data.egressIp === null ? '' : ` This service connects from ${data.egressIp}.`}
        </Text>
        <SimpleGrid cols={{ base: 1, md: 2 }}>
          <Slot name="a" storage={data} />
          <Slot name="b" storage={data} />
        </SimpleGrid>
        <Migrate />
      </Section>
      <Mode key={`${data.mode}${data.bufferRetention}`} storage={data} />
      <Media storage={data} />
    </Page>
  );
}

const copies: Record<NonNullable<StorageRecord['sink']['copy']>['kind'], string> = {
  fill: 'History moves to your database',
  move: 'History moves to another database',
  rewrite: 'History is written to your database again',
  return: 'History comes back to this service',
};

function titleOf({ sink, mode }: StorageRecord): string {
  if (sink.copy) return copies[sink.copy.kind];
  if (mode === 'managed') return 'History stays with this service';
  return sink.status === 'failing' ? 'Your database refuses history' : 'History goes to your database';
}

function aboutOf({ sink, mode, bufferRetention }: StorageRecord): string {
  if (sink.copy) return 'Users can chat meanwhile; nothing waits for the copy.';
  return mode === 'managed'
    ? 'Your own database can keep it instead.'
    : `This service keeps the last ${spans[bufferRetention] ?? bufferRetention} too, and reads the rest from you.`;
}

/** Where history is, where it goes, and how far it is. */
function Ways({ storage }: { storage: StorageRecord }): ReactNode {
  const { sink, mode, database } = storage;
  const slot = database.slots[database.active ?? 'a'] ?? database.slots.b;
  const { copy } = sink;
  return (
    <div className="box">
      <Stack gap="lg">
        <div className="ways">
          <div className="place">
            <Icon of={HereIcon} size={24} />
            <span>
              <b>With Parley</b>
              <span>this service</span>
            </span>
          </div>
          <div className="way">{wayOf(storage)}</div>
          <div className="place" data-side={slot === null ? 'none' : 'theirs'}>
            <Icon of={TheirsIcon} size={24} />
            <span>
              <b>Yours</b>
              <span>{slot === null ? 'not set up' : `${slot.type} ${slot.lastTest?.version ?? ''}`}</span>
            </span>
          </div>
        </div>
        {copy === null ? null : (
          <div>
            <div className="progress-head" role="status">
              <b>{plain(Math.floor(copy.percent))} %</b>
              <span>
                {plain(copy.done)} of {plain(copy.total)} records, oldest first
              </span>
              <span>{leftOf(copy.secondsLeft)}</span>
            </div>
            <Progress value={copy.percent} aria-label="Copied" />
          </div>
        )}
        {mode === 'managed' && copy === null ? null : (
          <Group gap="xs">
            <Tag tone={sink.status === 'healthy' ? 'ok' : sink.status === 'idle' ? 'neutral' : 'bad'}>
              {sink.status}
            </Tag>
            <Text size="sm" c="dimmed">
              last written <Time at={sink.lastSuccessAt} />
            </Text>
          </Group>
        )}
      </Stack>
    </div>
  );
}

function wayOf({ sink, mode }: StorageRecord): string {
  if (sink.copy) return `${compact(sink.copy.rowsPerSecond)} records a second`;
  return mode === 'managed' ? 'nothing is sent' : `${plain(Math.round(sink.lagSeconds))} s behind`;
}

function leftOf(seconds: number | null): string {
  if (seconds === null) return '';
  const minutes = Math.ceil(seconds / 60);
  return minutes <= 1 ? 'about a minute left' : `about ${minutes} minutes left`;
}

function Delivery({ storage: { sink, mode, bufferRetention } }: { storage: StorageRecord }): ReactNode {
  const idle = mode === 'managed' && sink.backlog === 0;
  if (idle && sink.copy === null) return null;
  return (
    <Numbers
      label="Delivery to your database"
      of={[
        { label: 'Changes wait', value: sink.backlog, note: `${Math.round(sink.lagSeconds)} s behind` },
        {
          label: 'Refused records',
          value: sink.refused,
          note: sink.refused === 0 ? 'none set aside' : 'they stay with this service',
        },
        {
          label: 'Also kept by this service',
          value: spans[bufferRetention] ?? bufferRetention,
          note: 'at least',
        },
        {
          label: 'Erasures wait',
          value: sink.erasures,
          note: sink.erasures === 0 ? 'all have reached your database' : 'for your database',
        },
      ]}
    />
  );
}

const spans: Record<string, string> = {
  '24h': '24 hours',
  '72h': '3 days',
  '7d': '7 days',
  '30d': '30 days',
};

function Mode({ storage }: { storage: StorageRecord }): ReactNode {
  const may = useMay('storage.update');
  const typed = useProductionName();
  const update = useChange('storage.update');
  const [mode, setMode] = useState(storage.mode);
  const [bufferRetention, setRetention] = useState(storage.bufferRetention);
  return (
    <Section title="Storage of history">
      <Stack maw={560}>
        <Radio.Group
          label="History"
          value={mode}
          onChange={(value) => setMode(value as StorageRecord['mode'])}
        >
          <Stack gap="xs" mt={4}>
            <Radio value="managed" label="with this service" disabled={!may} />
            <Radio
              value="byo_db"
              label="in your own database"
              description="Needs a connection in use whose test passed. This service keeps recent messages."
              disabled={!may}
            />
          </Stack>
        </Radio.Group>
        <NativeSelect
          label="This service keeps at least"
          value={bufferRetention}
          disabled={!may}
          onChange={(event) => setRetention(event.currentTarget.value as StorageRecord['bufferRetention'])}
          data={storage.supported.retentions.map((value) => ({ value, label: spans[value] ?? value }))}
        />
        {may ? (
          <Group>
            <ConfirmButton
              harmless
              label="Apply"
              title="Change the storage of history?"
              typed={mode === storage.mode ? undefined : typed}
              pending={update.isPending}
              error={update.error}
              onConfirm={() => update.mutateAsync({ mode, bufferRetention })}
            >
              Existing history is copied in the background, oldest first. The service stays available, and
              nothing is removed before the copy is confirmed.
            </ConfirmButton>
          </Group>
        ) : null}
      </Stack>
    </Section>
  );
}
