import { Alert, Group, NativeSelect, Progress, Radio, SimpleGrid, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { StorageRecord } from '@parley/protocol';
import { useCall, useChange } from '../api/hooks.ts';
import { useMay, useProductionName } from '../api/roles.ts';
import { ConfirmButton } from '../ui/confirm.tsx';
import { Numbers } from '../ui/numbers.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Failed, Loading } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';
import { Migrate, Slot } from './storage-database.tsx';
import { Media } from './storage-media.tsx';

export default function Storage(): ReactNode {
  const storage = useCall('storage.get', {}, { everyMs: 5_000 });
  if (storage.error) return <Failed error={storage.error} retry={() => void storage.refetch()} />;
  if (!storage.data) return <Loading what="the storage" />;
  const { data } = storage;
  return (
    <Page title="Storage" call={['storage.get', {}]}>
      <Delivery storage={data} />
      <Mode key={`${data.mode}${data.bufferRetention}`} storage={data} />
      <Section title="Databases">
        <Text size="sm" c="dimmed">
          Two slots, so that credentials change without a gap: set the one that is not in use, test it, and
          promote it.
          {data.egressIp === null ? '' : ` Connections come from ${data.egressIp}.`}
        </Text>
        <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
          <Slot name="a" storage={data} />
          <Slot name="b" storage={data} />
        </SimpleGrid>
        <Migrate />
      </Section>
      <Media storage={data} />
    </Page>
  );
}

function Delivery({ storage: { sink, mode } }: { storage: StorageRecord }): ReactNode {
  return (
    <Section title="Delivery to your database">
      <Numbers
        label="Delivery to your database"
        of={[
          {
            label: 'State',
            value: sink.status,
            note: mode === 'managed' ? 'history stays with this service' : 'history goes to your database',
          },
          { label: 'Behind by', value: mode === 'managed' ? '–' : `${Math.round(sink.lagSeconds)} s` },
          {
            label: 'Waiting',
            value: mode === 'managed' && sink.backlog === 0 ? '–' : sink.backlog,
            note: `${sink.refused} refused by the database`,
          },
          { label: 'Last success', value: <Time at={sink.lastSuccessAt} /> },
        ]}
      />
      {sink.error === null ? null : (
        <Alert color="red" variant="light" role="alert" title="The database does not take what it is sent">
          {sink.error}
        </Alert>
      )}
      {sink.copy === null ? null : (
        <Stack gap={4}>
          <Text size="sm" role="status">
            Copying: {sink.copy.done} of {sink.copy.total}
            {sink.copy.secondsLeft === null
              ? ''
              : `, about ${Math.ceil(sink.copy.secondsLeft / 60)} minutes left`}
          </Text>
          <Progress value={sink.copy.percent} aria-label="Copied" />
        </Stack>
      )}
    </Section>
  );
}

function Mode({ storage }: { storage: StorageRecord }): ReactNode {
  const may = useMay('storage.update');
  const typed = useProductionName();
  const update = useChange('storage.update');
  const [mode, setMode] = useState(storage.mode);
  const [bufferRetention, setRetention] = useState(storage.bufferRetention);
  return (
    <Section title="Where history is kept">
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
              label="in a database of your own"
              description="Needs an active slot whose test passed. This service keeps what is recent."
              disabled={!may}
            />
          </Stack>
        </Radio.Group>
        <NativeSelect
          label="This service keeps at least"
          value={bufferRetention}
          disabled={!may}
          onChange={(event) => setRetention(event.currentTarget.value as StorageRecord['bufferRetention'])}
          data={storage.supported.retentions}
        />
        {may ? (
          <Group>
            <ConfirmButton
              harmless
              label="Apply"
              title="Change where history is kept?"
              typed={mode === storage.mode ? undefined : typed}
              pending={update.isPending}
              error={update.error}
              onConfirm={() => update.mutateAsync({ mode, bufferRetention })}
            >
              What there is gets copied, oldest first, while everything goes on. Nothing is removed before it
              is confirmed.
            </ConfirmButton>
          </Group>
        ) : null}
      </Stack>
    </Section>
  );
}
