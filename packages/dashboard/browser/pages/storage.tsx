import {
  Alert,
  Button,
  Group,
  Modal,
  NativeSelect,
  Progress,
  Radio,
  SimpleGrid,
  Stack,
  Text,
} from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { Output, StorageRecord } from '@parley/protocol';
import { useCall, useChange } from '../api/hooks.ts';
import { useMay, useProductionName } from '../api/roles.ts';
import { ConfirmButton, useTypedName } from '../ui/confirm.tsx';
import { Secret } from '../ui/copy.tsx';
import { Facts } from '../ui/facts.tsx';
import { Field } from '../ui/field.tsx';
import { Numbers } from '../ui/numbers.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Failed, Loading } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';
import { Media } from './storage-media.tsx';
import { Tag } from '../ui/tag.tsx';

type SlotName = 'a' | 'b';

export default function Storage(): ReactNode {
  const storage = useCall('storage.get', {}, { everyMs: 5_000 });
  if (storage.error) return <Failed error={storage.error} retry={() => void storage.refetch()} />;
  if (!storage.data) return <Loading what="the storage" />;
  const { data } = storage;
  return (
    <Page title="Storage" call={['storage.get', {}]}>
      <Sink storage={data} />
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

function Sink({ storage: { sink, mode } }: { storage: StorageRecord }): ReactNode {
  return (
    <Section title="Sink">
      <Numbers
        label="Sink"
        of={[
          {
            label: 'State',
            value: sink.status,
            note: mode === 'managed' ? 'history stays with this service' : 'history goes to your database',
          },
          { label: 'Behind by', value: `${Math.round(sink.lagSeconds)} s` },
          { label: 'Waiting', value: sink.backlog, note: `${sink.refused} refused by the database` },
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

function Slot({ name, storage }: { name: SlotName; storage: StorageRecord }): ReactNode {
  const slot = storage.database.slots[name];
  const active = storage.database.active === name;
  const may = useMay('storage.setDatabase');
  return (
    <Section title={`Slot ${name}`} actions={active ? <Active /> : null}>
      {slot ? (
        <Facts
          label={`Slot ${name}`}
          of={[
            ['Kind', slot.type],
            ['URL', slot.url],
            ...(slot.replicaUrl === null ? [] : [['Replica', slot.replicaUrl] as [string, ReactNode]]),
            ['Schema', slot.schema ?? '—'],
            ['Last test', <LastTest test={slot.lastTest} />],
            ['Set', <Time at={slot.createdAt} />],
          ]}
        />
      ) : (
        <Text c="dimmed">Empty.</Text>
      )}
      {may ? <SlotActions name={name} type={slot?.type ?? null} active={active} /> : null}
    </Section>
  );
}

const Active = (): ReactNode => <Tag tone="ok">in use</Tag>;

const LastTest = ({
  test,
}: {
  test: NonNullable<StorageRecord['database']['slots']['a']>['lastTest'];
}): ReactNode =>
  test ? (
    <>
      {test.ok ? 'passed' : `failed: ${test.errors.join('; ')}`} <Time at={test.at} />
    </>
  ) : (
    'never'
  );

function SlotActions({
  name,
  type,
  active,
}: {
  name: SlotName;
  type: string | null;
  active: boolean;
}): ReactNode {
  const test = useChange('storage.testDatabase');
  const promote = useChange('storage.promote');
  const resync = useChange('storage.resync');
  const rotate = useChange('storage.rotateSecret');
  const typed = useProductionName();
  const failure = test.error ?? resync.error ?? rotate.error;
  return (
    <Stack gap="xs">
      <Group gap="xs">
        <SetDatabase name={name} replaces={type !== null} />
        {type === null ? null : (
          <>
            <Button
              size="compact-sm"
              variant="default"
              loading={test.isPending}
              onClick={() => test.mutate({ slot: name })}
            >
              Test
            </Button>
            {active ? (
              <Button
                size="compact-sm"
                variant="default"
                loading={resync.isPending}
                onClick={() => resync.mutate({})}
              >
                Write again
              </Button>
            ) : (
              <ConfirmButton
                harmless
                label="Promote"
                title={`Use slot ${name} from now on?`}
                typed={typed}
                pending={promote.isPending}
                error={promote.error}
                onConfirm={() => promote.mutateAsync({ slot: name })}
              >
                Where it is another database, history is copied into it first.
              </ConfirmButton>
            )}
            {type === 'http' ? (
              <Button
                size="compact-sm"
                variant="default"
                loading={rotate.isPending}
                onClick={() => rotate.mutate({ slot: name })}
              >
                New signing secret
              </Button>
            ) : null}
          </>
        )}
      </Group>
      {failure ? <Failed error={failure} /> : null}
      {test.data ? <TestResult test={test.data} /> : null}
      <Modal opened={Boolean(rotate.data)} onClose={() => rotate.reset()} title="The new signing secret">
        {rotate.data ? <Secret value={rotate.data.signingSecret} what="the secret" /> : null}
      </Modal>
    </Stack>
  );
}

const TestResult = ({ test }: { test: Output<'storage.testDatabase'> }): ReactNode => (
  <Alert
    color={test.ok ? 'teal' : 'red'}
    variant="light"
    role="status"
    title={test.ok ? `It works: ${test.type} ${test.version ?? ''}` : 'It does not work yet'}
  >
    {[
      ...test.errors,
      ...test.warnings,
      ...(test.rttMs === null ? [] : [`Round trip ${Math.round(test.rttMs)} ms.`]),
      ...(test.tls === null
        ? []
        : [`TLS ${test.tls.enabled ? (test.tls.verified ? 'verified' : 'not verified') : 'off'}.`]),
    ].map((line) => (
      <Text key={line} size="sm">
        {line}
      </Text>
    ))}
  </Alert>
);

function SetDatabase({ name, replaces }: { name: SlotName; replaces: boolean }): ReactNode {
  const [opened, setOpened] = useState(false);
  const [url, setUrl] = useState('');
  const [schema, setSchema] = useState('');
  const [replicaUrl, setReplicaUrl] = useState('');
  const production = useProductionName();
  const { ready, field, clear } = useTypedName(replaces ? production : undefined);
  const set = useChange('storage.setDatabase');
  const close = (): void => {
    setOpened(false);
    clear();
    setUrl('');
    setSchema('');
    setReplicaUrl('');
    set.reset();
  };
  const secret = set.data?.signingSecret;
  return (
    <>
      <Button size="compact-sm" variant="default" onClick={() => setOpened(true)}>
        Set
      </Button>
      <Modal opened={opened} onClose={close} title={`Database of slot ${name}`}>
        {set.isSuccess ? (
          <Stack>
            {secret === undefined ? (
              <Text>It is set. Test it next.</Text>
            ) : (
              <Secret value={secret} what="the signing secret" />
            )}
            <Button onClick={close}>Done</Button>
          </Stack>
        ) : (
          <form
            onSubmit={(event) => {
              event.preventDefault();
              if (!ready) return;
              set.mutate({
                slot: name,
                url,
                ...(schema === '' ? {} : { schema }),
                ...(replicaUrl === '' ? {} : { replicaUrl }),
              });
            }}
          >
            <Stack>
              <Field
                label="URL"
                description="postgres://, mysql://, mongodb:// or https://, with the writer’s password. It is sealed at once."
                required
                autoComplete="off"
                value={url}
                set={setUrl}
                data-autofocus
              />
              <Field label="Schema (if not the default)" autoComplete="off" value={schema} set={setSchema} />
              <Field
                label="URL of a replica to read from"
                autoComplete="off"
                value={replicaUrl}
                set={setReplicaUrl}
              />
              {field}
              {set.error ? <Failed error={set.error} /> : null}
              <Button type="submit" disabled={!ready} loading={set.isPending}>
                {replaces ? 'Replace' : 'Set'}
              </Button>
            </Stack>
          </form>
        )}
      </Modal>
    </>
  );
}

/** Makes the tables and a writer with an admin's URL. */
function Migrate(): ReactNode {
  const [adminUrl, setAdminUrl] = useState('');
  const migrate = useChange('storage.migrateDatabase', { done: () => setAdminUrl('') });
  if (!useMay('storage.migrateDatabase')) return null;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        migrate.mutate({ adminUrl });
      }}
    >
      <Stack maw={560} gap="xs">
        <Field
          label="Or let us make the tables, with an admin’s URL"
          description="It is used this once and kept nowhere. The writer that it makes goes into slot a."
          autoComplete="off"
          required
          value={adminUrl}
          set={setAdminUrl}
        />
        {migrate.error ? <Failed error={migrate.error} /> : null}
        {migrate.data ? (
          <Alert
            color="teal"
            variant="light"
            role="status"
            title={migrate.data.runtimeUrl ?? 'The tables are there'}
          >
            {migrate.data.notes.join(' ')}
          </Alert>
        ) : null}
        <Group>
          <Button type="submit" variant="default" loading={migrate.isPending}>
            Make the tables
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
