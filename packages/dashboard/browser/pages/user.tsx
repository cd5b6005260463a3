import { Alert, Anchor } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useCall, useEnv, usePages } from '../api/hooks.ts';
import { CurlButton, Id, Json } from '../ui/copy.tsx';
import { Facts } from '../ui/facts.tsx';
import { List } from '../ui/list.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Empty, Failed, Loading } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';

export function UserPage({ userId }: { userId: string }): ReactNode {
  const user = useCall('users.get', { userId });
  if (user.error) return <Failed error={user.error} retry={() => void user.refetch()} />;
  if (!user.data) return <Loading what="the user" />;
  const { id, name, imageUrl, metadata, createdAt, deactivatedAt } = user.data;
  return (
    <Page title={name ?? id} actions={<CurlButton name="users.get" input={{ userId }} />}>
      {deactivatedAt ? (
        <Alert color="yellow" variant="light">
          Deactivated <Time at={deactivatedAt} />: its tokens are refused and its sockets are closed.
        </Alert>
      ) : null}
      <Facts
        label="User"
        of={[
          ['Id', <Id id={id} />],
          ['Name', name ?? '—'],
          ['Picture', imageUrl ?? '—'],
          ['Metadata', <Json value={metadata} label="Metadata" />],
          ['Created', <Time at={createdAt} />],
        ]}
      />
      <Conversations userId={userId} />
    </Page>
  );
}

function Conversations({ userId }: { userId: string }): ReactNode {
  const env = useEnv();
  const pages = usePages('conversations.list', { userId, limit: 20 });
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
                {item.name ?? item.members?.map((m) => m.userId).join(' and ') ?? item.id}
              </Anchor>
            ),
          },
          { title: 'Type', cell: (item) => item.type, wide: true },
          { title: 'Unread', cell: (item) => item.unreadCount },
          { title: 'Last activity', cell: (item) => <Time at={item.lastActivityAt} /> },
        ]}
        empty={<Empty title="In no conversation" />}
      />
    </Section>
  );
}
