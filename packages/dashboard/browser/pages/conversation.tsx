import { Code, Group, Tabs } from '@mantine/core';
import type { ReactNode } from 'react';
import type { EventRecord } from '@parley/protocol';
import { useCall, useRows } from '../api/hooks.ts';
import { useNames } from '../api/names.ts';
import { useMay } from '../api/roles.ts';
import { CurlButton, Id, Json } from '../ui/copy.tsx';
import { Facts } from '../ui/facts.tsx';
import { useFilter } from '../ui/filter.tsx';
import { List } from '../ui/list.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Avatar, namesOf } from '../ui/people.tsx';
import { Empty, Failed, Loading } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';
import { Members } from './conversation-members.tsx';
import { Messages } from './conversation-messages.tsx';
import { Rules } from './conversation-rules.tsx';

export function ConversationPage({ conversationId }: { conversationId: string }): ReactNode {
  const conversation = useCall('conversations.get', { conversationId });
  const [view, setView] = useFilter('view');
  const mayRead = useMay('messages.list');
  const nameOf = useNames(conversation.data?.members.map(({ userId }) => userId) ?? []);
  if (conversation.error)
    return <Failed error={conversation.error} retry={() => void conversation.refetch()} />;
  if (!conversation.data) return <Loading what="the conversation" />;
  const { id, name, type, lastSeq, createdAt, deletedAt, metadata, rules = {} } = conversation.data;
  const isGroup = type === 'group' && deletedAt === undefined;
  const shown = (view === 'rules' ? isGroup : mayRead && view !== '') ? view : 'members';
  const members = conversation.data.members.map(({ userId }) => userId);
  return (
    <Page
      title={name ?? namesOf(members.slice(0, 3).map(nameOf), members.length)}
      call={['conversations.get', { conversationId }]}
      about={
        <Group gap="xs">
          <span className="avatars">
            {members.slice(0, 4).map((userId) => (
              <Avatar key={userId} id={userId} name={nameOf(userId)} small />
            ))}
          </span>
          <Id id={id} />
        </Group>
      }
    >
      <Tabs value={shown} onChange={(value) => setView(value ?? '')} keepMounted={false}>
        <Tabs.List>
          <Tabs.Tab value="members">Members {members.length}</Tabs.Tab>
          {mayRead ? <Tabs.Tab value="messages">Messages</Tabs.Tab> : null}
          {mayRead ? <Tabs.Tab value="events">Events</Tabs.Tab> : null}
          {isGroup ? <Tabs.Tab value="rules">Rules</Tabs.Tab> : null}
        </Tabs.List>
        <Tabs.Panel value="members" pt="md">
          <Members conversationId={conversationId} lastSeq={lastSeq} group={isGroup} />
        </Tabs.Panel>
        <Tabs.Panel value="messages" pt="md">
          <Messages conversationId={conversationId} members={members} deleted={deletedAt !== undefined} />
        </Tabs.Panel>
        <Tabs.Panel value="events" pt="md">
          <Events conversationId={conversationId} lastSeq={lastSeq} />
        </Tabs.Panel>
        {isGroup ? (
          <Tabs.Panel value="rules" pt="md">
            <Rules conversationId={conversationId} rules={rules} />
          </Tabs.Panel>
        ) : null}
      </Tabs>
      <Facts
        label="Conversation"
        of={[
          ['Kind', type === 'direct' ? 'direct' : 'group'],
          ['Last seq', lastSeq],
          ['Created', <Time at={createdAt} />],
          ...(deletedAt ? [['Deleted', <Time at={deletedAt} />] as [string, ReactNode]] : []),
          ...(Object.keys(metadata).length === 0
            ? []
            : [['Metadata', <Json value={metadata} label="Metadata" />] as [string, ReactNode]]),
        ]}
      />
    </Page>
  );
}

const eventsShown = 100;

function Events({ conversationId, lastSeq }: { conversationId: string; lastSeq: number }): ReactNode {
  const input = { conversationId, after: Math.max(0, lastSeq - eventsShown), limit: eventsShown };
  const events = useRows('events.list', input);
  if (events.error?.code === 'resync_required')
    return (
      <Empty title="Older than the event retention">
        The service keeps only recent events. The messages are still there.
      </Empty>
    );
  if (!events.items) return <List what="events" pages={events} rowKey={String} columns={[]} empty={null} />;
  return (
    <Section
      title={`The last ${events.items.length} events`}
      actions={<CurlButton name="events.list" input={input} />}
    >
      <List
        what="events"
        pages={{ ...events, items: events.items.toReversed() }}
        rowKey={({ seq }) => String(seq)}
        columns={[
          { title: 'Seq', cell: ({ seq }) => seq },
          { title: 'Type', cell: ({ type }) => type },
          { title: 'At', cell: ({ createdAt }) => <Time at={createdAt} />, wide: true },
          { title: 'Details', cell: (event) => <Details event={event} /> },
        ]}
        empty={<Empty title="No events" />}
      />
    </Section>
  );
}

const Details = ({ event: { seq, type, createdAt, ...details } }: { event: EventRecord }): ReactNode => (
  <Code style={{ whiteSpace: 'pre-wrap' }}>{JSON.stringify(details)}</Code>
);
