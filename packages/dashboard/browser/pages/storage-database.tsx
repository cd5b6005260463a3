import { Alert, Button, Group, Stack, Text, Title } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { Output, StorageRecord } from '@parley/protocol';
import { useChange } from '../api/hooks.ts';
import { useMay, useProductionName } from '../api/roles.ts';
import { ConfirmButton, useTypedName } from '../ui/confirm.tsx';
import { Secret } from '../ui/copy.tsx';
import { Pairs } from '../ui/facts.tsx';
import { Field } from '../ui/field.tsx';
import { SecretDialog } from '../ui/secret-dialog.tsx';
import { Failed } from '../ui/states.tsx';
import { Tag } from '../ui/tag.tsx';
import { Time } from '../ui/time.tsx';

type SlotName = 'a' | 'b';

export function Slot({ name, storage }: { name: SlotName; storage: StorageRecord }): ReactNode {
  const slot = storage.database.slots[name];
  const active = storage.database.active === name;
  const may = useMay('storage.setDatabase');
  return (
    <Stack gap="sm" component="section" aria-label={`Slot ${name}`} className="box">
      <Group justify="space-between">
        <Title order={3} size="h4">
          Slot {name}
        </Title>
        {active ? <Tag tone="ok">in use</Tag> : slot ? <Tag>not in use</Tag> : null}
      </Group>
      {slot ? (
        <>
          <span className="mono wrap">{slot.url}</span>
          <Pairs
            of={[
              ['Kind', slot.type],
              ...(slot.replicaUrl === null
                ? []
                : [['Replica', <span className="mono">{slot.replicaUrl}</span>] as [string, ReactNode]]),
              ...(slot.schema === null ? [] : [['Schema', slot.schema] as [string, ReactNode]]),
              ['Last test', <LastTest test={slot.lastTest} />],
              ['Set', <Time at={slot.createdAt} />],
            ]}
          />
        </>
      ) : (
        <Text c="dimmed">Empty. Set new credentials here.</Text>
      )}
      {may ? <SlotActions name={name} type={slot?.type ?? null} active={active} /> : null}
    </Stack>
  );
}

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
                If it is another database, the history is copied into it first.
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
      <SecretDialog
        opened={Boolean(rotate.data)}
        onClose={() => rotate.reset()}
        title="The new signing secret"
        secret
      >
        {rotate.data ? <Secret value={rotate.data.signingSecret} /> : null}
      </SecretDialog>
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
      <SecretDialog
        opened={opened}
        onClose={close}
        title={`Database of slot ${name}`}
        secret={secret !== undefined}
      >
        {set.isSuccess ? (
          secret === undefined ? (
            <>
              <Text>The URL is saved. Test it now.</Text>
              <Button onClick={close}>Done</Button>
            </>
          ) : (
            <Secret value={secret} />
          )
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
                description="postgres://, mysql://, mongodb:// or https://, with the writer’s password. It is sealed at once. TLS is required and verified; for a database without TLS add ?sslmode=disable."
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
      </SecretDialog>
    </>
  );
}

/** Makes the tables and a writer with an admin's URL. */
export function Migrate(): ReactNode {
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
          label="Or let this service create the tables, with an admin’s URL"
          description="The service uses this URL once and does not store it. It puts the new database user into slot a."
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
            title={migrate.data.runtimeUrl ?? 'The tables are ready'}
          >
            {migrate.data.notes.join(' ')}
          </Alert>
        ) : null}
        <Group>
          <Button type="submit" variant="default" loading={migrate.isPending}>
            Create the tables
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
