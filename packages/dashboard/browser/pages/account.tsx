import { Button, Group, PasswordInput, Stack, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { Account as AccountRecord } from '@parley/protocol';
import { useCall, useChange, useRows } from '../api/hooks.ts';
import { browserName } from '../ui/agent.ts';
import { ConfirmButton } from '../ui/confirm.tsx';
import { List } from '../ui/list.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Empty, Failed, Loading } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';
import { SecondFactor } from './second-factor.tsx';
import { Tag } from '../ui/tag.tsx';

export default function Account(): ReactNode {
  const account = useCall('account.get', {});
  if (account.error) return <Failed error={account.error} retry={() => void account.refetch()} />;
  if (!account.data) return <Loading what="your account" />;
  return (
    <Page title="Your account" call={['account.get', {}]}>
      <Name account={account.data} />
      <Password secondFactor={account.data.twoFactor} />
      <SecondFactor account={account.data} />
      <Sessions />
    </Page>
  );
}

function Name({ account }: { account: AccountRecord }): ReactNode {
  const [name, setName] = useState(account.name);
  const update = useChange('account.update');
  return (
    <Section title={account.email}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          update.mutate({ name });
        }}
      >
        <Group align="flex-end">
          <TextInput
            label="Name"
            autoComplete="name"
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <Button type="submit" variant="default" loading={update.isPending}>
            Save
          </Button>
          <span role="status">{update.isSuccess ? 'Saved.' : ''}</span>
        </Group>
      </form>
      {update.error ? <Failed error={update.error} /> : null}
    </Section>
  );
}

function Password({ secondFactor }: { secondFactor: boolean }): ReactNode {
  const [password, setPassword] = useState('');
  const [newPassword, setNewPassword] = useState('');
  const [code, setCode] = useState('');
  const change = useChange('account.changePassword', {
    done: () => {
      setPassword('');
      setNewPassword('');
      setCode('');
    },
  });
  return (
    <Section title="Password">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          change.mutate({ password, newPassword, ...(code === '' ? {} : { code }) });
        }}
      >
        <Stack maw={400}>
          <PasswordInput
            label="Current password"
            autoComplete="current-password"
            required
            value={password}
            onChange={(event) => setPassword(event.currentTarget.value)}
          />
          <PasswordInput
            label="New password"
            description="All other sessions end."
            autoComplete="new-password"
            required
            value={newPassword}
            onChange={(event) => setNewPassword(event.currentTarget.value)}
          />
          {secondFactor ? (
            <TextInput
              label="Code of your authenticator app, or a recovery code"
              autoComplete="one-time-code"
              value={code}
              onChange={(event) => setCode(event.currentTarget.value)}
            />
          ) : null}
          {change.error ? <Failed error={change.error} /> : null}
          <Group>
            <Button type="submit" variant="default" loading={change.isPending}>
              Change the password
            </Button>
            <span role="status">{change.isSuccess ? 'Changed.' : ''}</span>
          </Group>
        </Stack>
      </form>
    </Section>
  );
}

function Sessions(): ReactNode {
  const sessions = useRows('account.listSessions', {});
  const end = useChange('account.endSession');
  const endOthers = useChange('account.endOtherSessions');
  return (
    <Section
      title="Your sessions"
      actions={
        (sessions.items?.length ?? 0) > 1 ? (
          <ConfirmButton
            label="End all other sessions"
            title="End all other sessions?"
            pending={endOthers.isPending}
            error={endOthers.error}
            onConfirm={() => endOthers.mutateAsync({})}
          >
            Every other browser has to sign in again.
          </ConfirmButton>
        ) : null
      }
    >
      {end.error ? <Failed error={end.error} /> : null}
      <List
        what="sessions"
        pages={sessions}
        rowKey={(session) => session.id}
        columns={[
          {
            title: 'Browser',
            cell: (session) => <span title={session.userAgent}>{browserName(session.userAgent)}</span>,
          },
          { title: 'Address', cell: (session) => session.address, wide: true },
          { title: 'Last used', cell: (session) => <Time at={session.lastUsedAt} /> },
          {
            title: '',
            cell: (session) =>
              session.current ? (
                <Tag tone="ok">this one</Tag>
              ) : (
                <Button
                  size="compact-xs"
                  variant="default"
                  onClick={() => end.mutate({ sessionId: session.id })}
                >
                  End
                </Button>
              ),
          },
        ]}
        empty={<Empty title="No sessions" />}
      />
    </Section>
  );
}
