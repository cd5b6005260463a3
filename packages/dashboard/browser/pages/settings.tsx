import { Button, Group, NativeSelect, Stack, Switch, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { Environment } from '@parley/protocol';
import { useChange, useEnv } from '../api/hooks.ts';
import { useMay, useOrganization } from '../api/roles.ts';
import { ConfirmButton } from '../ui/confirm.tsx';
import { Id } from '../ui/copy.tsx';
import { Facts } from '../ui/facts.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Failed, Loading } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';
import { Tag } from '../ui/tag.tsx';

export default function Settings(): ReactNode {
  const id = useEnv();
  const env = useOrganization()?.environments.find((e) => e.id === id);
  if (!env) return <Loading what="the environment" />;
  return (
    <Page title="Settings" call={['environments.get', { environmentId: env.id }]}>
      <Facts
        label="Environment"
        of={[
          ['Id', <Id id={env.id} />],
          ['Kind', env.kind],
          ['Plan', env.plan],
          ['Created', <Time at={env.createdAt} />],
          ['Status', <Tag tone={env.status === 'active' ? 'ok' : 'bad'}>{env.status}</Tag>],
        ]}
      />
      <Form key={env.id} env={env} />
      <Suspend env={env} />
    </Page>
  );
}

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
        <Stack maw={480}>
          <TextInput
            label="Name"
            value={name}
            maxLength={200}
            required
            disabled={!may}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <NativeSelect
            label="Conversations that clients may create"
            data={[
              { value: 'all', label: 'Direct ones and groups' },
              { value: 'direct', label: 'Direct ones' },
              { value: 'none', label: 'None: only your server creates them' },
            ]}
            value={settings.clientConversationCreation}
            disabled={!may}
            onChange={({ currentTarget: { value } }) =>
              setSettings({
                ...settings,
                clientConversationCreation: value as typeof settings.clientConversationCreation,
              })
            }
          />
          <NativeSelect
            label="Who sends pushes"
            data={[
              { value: 'providers', label: 'Parley, with your providers’ credentials' },
              { value: 'webhook', label: 'Your server, on the webhook notification.needed' },
              { value: 'off', label: 'Nobody' },
            ]}
            value={settings.pushMode}
            disabled={!may}
            onChange={({ currentTarget: { value } }) =>
              setSettings({ ...settings, pushMode: value as typeof settings.pushMode })
            }
          />
          <NativeSelect
            label="What pushes show"
            description="Google, Apple and Expo can read what their pushes show."
            data={[
              { value: 'full', label: 'Names and text' },
              { value: 'name', label: 'Names only' },
              { value: 'none', label: 'Neither names nor text' },
            ]}
            value={settings.pushContent}
            disabled={!may}
            onChange={({ currentTarget: { value } }) =>
              setSettings({ ...settings, pushContent: value as typeof settings.pushContent })
            }
          />
          {env.kind === 'development' ? (
            <Switch
              label="Accept unsigned development tokens"
              description={
                env.local
                  ? 'From the machine that the service runs on only, because the first start made this environment.'
                  : 'Anybody who reaches this service can then be any user. Never on the open network.'
              }
              checked={settings.devTokens}
              disabled={!may}
              onChange={(event) => setSettings({ ...settings, devTokens: event.currentTarget.checked })}
            />
          ) : null}
          {update.error ? <Failed error={update.error} /> : null}
          {may ? (
            <Group>
              <Button type="submit" loading={update.isPending}>
                Save
              </Button>
              <span role="status">{update.isSuccess ? 'Saved.' : ''}</span>
            </Group>
          ) : null}
        </Stack>
      </form>
    </Section>
  );
}

function Suspend({ env }: { env: Environment }): ReactNode {
  const update = useChange('environments.update');
  if (!useMay('environments.update')) return null;
  const confirmed = env.kind === 'production' ? { confirm: env.name } : {};
  return (
    <Section title={env.status === 'active' ? 'Suspend' : 'Take up again'}>
      <Group>
        {env.status === 'active' ? (
          <ConfirmButton
            label="Suspend the environment"
            title={`Suspend ${env.name}?`}
            pending={update.isPending}
            error={update.error}
            onConfirm={() => update.mutateAsync({ environmentId: env.id, status: 'suspended', ...confirmed })}
          >
            Every request is refused and every socket closes until it is active again. Nothing is lost.
          </ConfirmButton>
        ) : (
          <Button
            loading={update.isPending}
            onClick={() => update.mutate({ environmentId: env.id, status: 'active' })}
          >
            Make it active
          </Button>
        )}
      </Group>
    </Section>
  );
}
