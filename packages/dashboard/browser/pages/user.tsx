import { Alert, Anchor, Button, Group, Radio, Stack } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import { useCall, useChange, useEnv, usePages } from '../api/hooks.ts';
import { useNames } from '../api/names.ts';
import { useMay, useProductionName } from '../api/roles.ts';
import { ConfirmButton } from '../ui/confirm.tsx';
import { Id, Json } from '../ui/copy.tsx';
import { Facts } from '../ui/facts.tsx';
import { List } from '../ui/list.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Avatar, namesOf } from '../ui/people.tsx';
import { Empty, Failed, Loading } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';
import { UserConnections } from './user-connections.tsx';

export function UserPage({ userId }: { userId: string }): ReactNode {
  const user = useCall('users.get', { userId });
  if (user.error) return <Failed error={user.error} retry={() => void user.refetch()} />;
  if (!user.data) return <Loading what="the user" />;
  const { id, name, imageUrl, metadata, createdAt, deactivatedAt } = user.data;
  return (
    <Page
      title={name ?? id}
      call={['users.get', { userId }]}
      about={
        <Group gap="xs">
          <Avatar id={id} name={name ?? id} />
          <Id id={id} />
        </Group>
      }
    >
      {deactivatedAt ? (
        <Alert color="yellow" variant="light">
          Deactivated <Time at={deactivatedAt} />: tokens are refused and sockets are closed.
        </Alert>
      ) : null}
      <Facts
        label="User"
        of={[
          ['Picture', imageUrl ?? '—'],
          ['Metadata', <Json value={metadata} label="Metadata" />],
          ['Created', <Time at={createdAt} />],
        ]}
      />
      <Actions userId={userId} deactivated={Boolean(deactivatedAt)} />
      <Conversations userId={userId} />
      <UserConnections userId={userId} />
    </Page>
  );
}

function Actions({ userId, deactivated }: { userId: string; deactivated: boolean }): ReactNode {
  const env = useEnv();
  const [, navigate] = useLocation();
  const may = useMay('users.deactivate');
  const mayTrace = useMay('live.trace');
  const production = useProductionName();
  const [messages, setMessages] = useState<'anonymize' | 'delete'>('anonymize');
  const deactivate = useChange('users.deactivate');
  const reactivate = useChange('users.reactivate');
  const revoke = useChange('users.revokeTokens');
  const erase = useChange('users.erase', { done: () => navigate(`/${env}/users`) });
  if (!may) return null;
  return (
    <Group gap="xs">
      {deactivated ? (
        <Button
          size="compact-sm"
          variant="default"
          loading={reactivate.isPending}
          onClick={() => reactivate.mutate({ userId })}
        >
          Reactivate
        </Button>
      ) : (
        <ConfirmButton
          label="Deactivate"
          title={`Deactivate ${userId}?`}
          pending={deactivate.isPending}
          error={deactivate.error}
          onConfirm={() => deactivate.mutateAsync({ userId })}
        >
          The user’s tokens are refused and sockets close at once. You can reactivate the user.
        </ConfirmButton>
      )}
      <ConfirmButton
        label="Revoke tokens"
        title={`Revoke all tokens of ${userId}?`}
        pending={revoke.isPending}
        error={revoke.error}
        onConfirm={() => revoke.mutateAsync({ userId })}
      >
        Tokens issued before now are refused and sockets close. New tokens work.
      </ConfirmButton>
      <ConfirmButton
        label="Erase"
        title={`Erase ${userId}?`}
        typed={production ?? userId}
        pending={erase.isPending}
        error={erase.error}
        onConfirm={() =>
          erase.mutateAsync({
            userId,
            messages,
            ...(production === undefined ? {} : { confirm: production }),
          })
        }
      >
        <Stack gap="xs">
          This cannot be undone. The user’s id, name and metadata are removed everywhere.
          <Radio.Group
            label="Messages of the user"
            value={messages}
            onChange={(value) => setMessages(value as 'anonymize' | 'delete')}
          >
            <Stack gap={4} mt={4}>
              <Radio value="anonymize" label="stay, without the author" />
              <Radio value="delete" label="are deleted for good" />
            </Stack>
          </Radio.Group>
        </Stack>
      </ConfirmButton>
      {mayTrace ? (
        <Button
          component={Link}
          href={`/${env}/trace?userId=${encodeURIComponent(userId)}`}
          size="compact-sm"
          variant="default"
        >
          Follow the frames
        </Button>
      ) : null}
      {reactivate.error ? <Failed error={reactivate.error} /> : null}
    </Group>
  );
}

function Conversations({ userId }: { userId: string }): ReactNode {
  const env = useEnv();
  const pages = usePages('conversations.list', { userId, limit: 20 });
  const nameOf = useNames(pages.items?.flatMap((item) => item.members?.map((m) => m.userId) ?? []) ?? []);
  return (
    <Section title="Conversations">
      <List
        what="conversations"
        pages={pages}
        rowKey={(item) => item.id}
        columns={[
          {
            title: 'Conversation',
            cell: (item) => (
              <Anchor component={Link} href={`/${env}/conversations/${item.id}`}>
                {item.name ?? (item.members ? namesOf(item.members.map((m) => nameOf(m.userId))) : item.id)}
              </Anchor>
            ),
          },
          { title: 'Type', cell: (item) => item.type, wide: true },
          { title: 'Unread', cell: (item) => item.unreadCount },
          { title: 'Last activity', cell: (item) => <Time at={item.lastActivityAt} /> },
        ]}
        empty={<Empty title="No conversations" />}
      />
    </Section>
  );
}
