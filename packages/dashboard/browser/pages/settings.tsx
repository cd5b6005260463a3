import { Button, Group, NativeSelect, Switch, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { Environment } from '@parley/protocol';
import { useChange, useEnv } from '../api/hooks.ts';
import { useMay, useOrganization } from '../api/roles.ts';
import { ConfirmButton } from '../ui/confirm.tsx';
import { Id } from '../ui/copy.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Setting } from '../ui/setting.tsx';
import { Failed, Loading } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';
import { Tag } from '../ui/tag.tsx';

export default function Settings(): ReactNode {
  const id = useEnv();
  const env = useOrganization()?.environments.find((e) => e.id === id);
  if (!env) return <Loading what="the environment" />;
  return (
    <Page
      title="Settings"
      call={['environments.get', { environmentId: env.id }]}
      about={
        <Group gap="xs">
          <Tag tone={env.status === 'active' ? 'ok' : 'bad'}>{env.status}</Tag>
          <Id id={env.id} />
          <span>
            {env.kind}, on the plan {env.plan}, created <Time at={env.createdAt} />
          </span>
        </Group>
      }
    >
      <Form key={env.id} env={env} />
      <Suspend env={env} />
    </Page>
  );
}

type Values = Environment['settings'];

interface Choice<K extends keyof Values> {
  name: K;
  label: string;
  about: string;
  options: [value: Values[K] & string, label: string][];
}
const choice = <const K extends keyof Values>(of: Choice<K>): Choice<K> => of;

const choices = [
  choice({
    name: 'clientConversationCreation',
    label: 'Conversations that clients may create',
    about: 'Your server may always create all kinds.',
    options: [
      ['all', 'Direct conversations and groups'],
      ['direct', 'Direct conversations'],
      ['none', 'None'],
    ],
  }),
  choice({
    name: 'pushMode',
    label: 'Sender of pushes',
    about: 'With your server, each push becomes a webhook notification.needed.',
    options: [
      ['providers', 'Parley, with your credentials'],
      ['webhook', 'Your server'],
      ['off', 'Nobody'],
    ],
  }),
  choice({
    name: 'pushContent',
    label: 'Content of pushes',
    about: 'Google, Apple and Expo can read the content of their pushes.',
    options: [
      ['full', 'Names and text'],
      ['name', 'Names only'],
      ['none', 'Neither names nor text'],
    ],
  }),
  choice({
    name: 'defaultLevel',
    label: 'Pushed messages',
    about: 'For members who have not chosen a level in a conversation.',
    options: [
      ['all', 'All'],
      ['mentions', 'Messages that mention them'],
    ],
  }),
];

function Form({ env }: { env: Environment }): ReactNode {
  const may = useMay('environments.update');
  const update = useChange('environments.update');
  const [name, setName] = useState(env.name);
  const [settings, setSettings] = useState(env.settings);
  return (
    <Section title="Name and rules">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          update.mutate({ environmentId: env.id, name, settings });
        }}
      >
        <Setting label="Name" about="In production you type the name to confirm a deletion.">
          {(labelled) => (
            <TextInput
              {...labelled}
              value={name}
              maxLength={200}
              required
              disabled={!may}
              onChange={(event) => setName(event.currentTarget.value)}
            />
          )}
        </Setting>
        {choices.map(({ name: key, label, about, options }) => (
          <Setting key={key} label={label} about={about}>
            {(labelled) => (
              <NativeSelect
                {...labelled}
                data={options.map(([value, text]) => ({ value, label: text }))}
                value={settings[key]}
                disabled={!may}
                onChange={({ currentTarget: { value } }) => setSettings({ ...settings, [key]: value })}
              />
            )}
          </Setting>
        ))}
        {env.kind === 'development' ? (
          <Setting
            label="Accept unsigned development tokens"
            about={
              env.local
                ? 'Only from the machine of the service, because the first start created this environment.'
                : 'Anybody who can reach this service can then act as any user. Never allow this on a public network.'
            }
          >
            {(labelled) => (
              <Switch
                {...labelled}
                checked={settings.devTokens}
                disabled={!may}
                onChange={(event) => setSettings({ ...settings, devTokens: event.currentTarget.checked })}
              />
            )}
          </Setting>
        ) : null}
        {update.error ? <Failed error={update.error} /> : null}
        {may ? (
          <Group mt="md">
            <Button type="submit" loading={update.isPending}>
              Save
            </Button>
            <span role="status">{update.isSuccess ? 'Saved.' : ''}</span>
          </Group>
        ) : null}
      </form>
    </Section>
  );
}

function Suspend({ env }: { env: Environment }): ReactNode {
  const update = useChange('environments.update');
  if (!useMay('environments.update')) return null;
  const confirmed = env.kind === 'production' ? { confirm: env.name } : {};
  return (
    <Section title={env.status === 'active' ? 'Suspend the environment' : 'The environment is suspended'}>
      <Text c="dimmed">
        A suspended environment refuses every request and closes every socket. No data is lost.
      </Text>
      <Group>
        {env.status === 'active' ? (
          <ConfirmButton
            label="Suspend the environment"
            title={`Suspend ${env.name}?`}
            pending={update.isPending}
            error={update.error}
            onConfirm={() => update.mutateAsync({ environmentId: env.id, status: 'suspended', ...confirmed })}
          >
            The environment refuses every request and closes every socket until you activate it. No data is
            lost.
          </ConfirmButton>
        ) : (
          <Button
            loading={update.isPending}
            onClick={() => update.mutate({ environmentId: env.id, status: 'active' })}
          >
            Activate the environment
          </Button>
        )}
      </Group>
    </Section>
  );
}
