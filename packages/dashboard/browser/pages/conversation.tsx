import { Anchor, Button, Code, Group, Stack, Tabs, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { EventRecord, Output } from '@parley/protocol';
import { call } from '../api/call.ts';
import type { ApiFailure } from '../api/call.ts';
import { useCall, useEnv, usePages, useRows } from '../api/hooks.ts';
import { useMay } from '../api/roles.ts';
import { CurlButton, Id, Json } from '../ui/copy.tsx';
import { Facts } from '../ui/facts.tsx';
import { useFilter } from '../ui/filter.tsx';
import { List } from '../ui/list.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Empty, Failed, Loading } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';
import { Tag } from '../ui/tag.tsx';

export function ConversationPage({ conversationId }: { conversationId: string }): ReactNode {
  const conversation = useCall('conversations.get', { conversationId });
  const [view, setView] = useFilter('view');
  const mayRead = useMay('messages.list');
  const shown = mayRead && view !== '' ? view : 'members';
  if (conversation.error)
    return <Failed error={conversation.error} retry={() => void conversation.refetch()} />;
  if (!conversation.data) return <Loading what="the conversation" />;
  const { id, name, type, lastSeq, createdAt, deletedAt, metadata } = conversation.data;
  return (
    <Page title={name ?? id} call={['conversations.get', { conversationId }]}>
      <Facts
        label="Conversation"
        of={[
          ['Id', <Id id={id} />],
          ['Type', type],
          ['Last seq', lastSeq],
          ['Created', <Time at={createdAt} />],
          ...(deletedAt ? [['Deleted', <Time at={deletedAt} />] as [string, ReactNode]] : []),
          ['Metadata', <Json value={metadata} label="Metadata" />],
        ]}
      />
      <Tabs value={shown} onChange={(value) => setView(value ?? '')} keepMounted={false}>
        <Tabs.List>
          <Tabs.Tab value="members">Members</Tabs.Tab>
          {mayRead ? <Tabs.Tab value="messages">Messages</Tabs.Tab> : null}
          {mayRead ? <Tabs.Tab value="events">Events</Tabs.Tab> : null}
        </Tabs.List>
        <Tabs.Panel value="members" pt="md">
          <Members conversationId={conversationId} />
        </Tabs.Panel>
        <Tabs.Panel value="messages" pt="md">
          <Messages conversationId={conversationId} />
        </Tabs.Panel>
        <Tabs.Panel value="events" pt="md">
          <Events conversationId={conversationId} lastSeq={lastSeq} />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

function Members({ conversationId }: { conversationId: string }): ReactNode {
  const env = useEnv();
  const pages = usePages('members.list', { conversationId, limit: 100 });
  return (
    <Section title="Members">
      <List
        what="members"
        pages={pages}
        rowKey={(member) => member.userId}
        columns={[
          {
            title: 'User',
            cell: (member) => (
              <Anchor component={Link} href={`/${env}/users/${encodeURIComponent(member.userId)}`}>
                <Code>{member.userId}</Code>
              </Anchor>
            ),
          },
          { title: 'Role', cell: (member) => member.role },
          { title: 'Read up to', cell: (member) => member.lastReadSeq },
          { title: 'Delivered up to', cell: (member) => member.lastDeliveredSeq },
        ]}
        empty={<Empty title="No members" />}
      />
    </Section>
  );
}

type MessagePage = Output<'messages.list'>;

function Messages({ conversationId }: { conversationId: string }): ReactNode {
  const env = useEnv();
  const query = useInfiniteQuery<MessagePage, ApiFailure>({
    queryKey: [env, 'messages.list', conversationId],
    queryFn: ({ pageParam, signal }) =>
      call(
        'messages.list',
        { conversationId, limit: 50, ...(pageParam === null ? {} : { before: pageParam as number }) },
        env,
        signal,
      ),
    initialPageParam: null,
    getNextPageParam: (last) => (last.hasMore ? last.data.at(-1)!.seq : null),
  });
  if (query.error) return <Failed error={query.error} retry={() => void query.refetch()} />;
  if (!query.data) return <Loading what="messages" />;
  const messages = query.data.pages.flatMap((page) => page.data);
  if (messages.length === 0) return <Empty title="No messages yet" />;
  return (
    <Section
      title="Messages"
      actions={<CurlButton name="messages.list" input={{ conversationId, limit: 50 }} />}
    >
      <Stack
        component="ol"
        gap="sm"
        p={0}
        m={0}
        style={{ listStyle: 'none' }}
        aria-label="Messages, newest first"
      >
        {messages.map((message) => (
          <Stack key={message.id} component="li" gap={2}>
            <Group gap="xs">
              <Text fw={600}>{message.senderId ?? 'system'}</Text>
              <Text size="sm" c="dimmed">
                seq {message.seq} · <Time at={message.createdAt} />
              </Text>
              {(message.version ?? 1) > 1 ? <Tag tone="neutral">version {message.version}</Tag> : null}
              <Anchor component={Link} size="sm" href={`/${env}/delivery?messageId=${message.id}`}>
                Did it arrive?
              </Anchor>
            </Group>
            {message.deletedAt ? (
              <Text c="dimmed" fs="italic">
                deleted <Time at={message.deletedAt} />
              </Text>
            ) : (
              <Text style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>{message.text}</Text>
            )}
            {message.attachments.map((file) => (
              <Text key={file.id} size="sm">
                📎 {file.name} ({file.mimeType}, {file.size} bytes)
              </Text>
            ))}
            {message.deletedAt || (message.version ?? 1) > 1 ? <History messageId={message.id} /> : null}
          </Stack>
        ))}
      </Stack>
      {query.hasNextPage ? (
        <Group>
          <Button
            variant="default"
            onClick={() => void query.fetchNextPage()}
            loading={query.isFetchingNextPage}
          >
            Show older ones
          </Button>
        </Group>
      ) : null}
    </Section>
  );
}

/** What a message said before, as far as it is kept. */
function History({ messageId }: { messageId: string }): ReactNode {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Group>
        <Button
          variant="default"
          size="compact-sm"
          aria-expanded={open}
          onClick={() => {
            setOpen(!open);
          }}
        >
          {open ? 'Hide its history' : 'Show its history'}
        </Button>
      </Group>
      {open ? <Versions messageId={messageId} /> : null}
    </>
  );
}

const happened = { created: 'written', edited: 'edited', deleted: 'deleted' };

function Versions({ messageId }: { messageId: string }): ReactNode {
  const versions = useCall('messages.versions', { messageId });
  if (versions.error) return <Failed error={versions.error} retry={() => void versions.refetch()} />;
  if (!versions.data) return <Loading what="its history" />;
  return (
    <Stack
      component="ol"
      gap={4}
      p={0}
      m={0}
      style={{ listStyle: 'none' }}
      aria-label="History, oldest first"
    >
      {versions.data.data.map(({ seq, type, at, actorId, kept, text }) => (
        <Text key={seq} component="li" size="sm" style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
          {happened[type]} <Time at={at} /> by {actorId ?? 'the server'}
          {type === 'deleted' ? '' : kept ? `: ${text ?? ''}` : ': what it said is not kept'}
        </Text>
      ))}
    </Stack>
  );
}

const eventsShown = 100;

function Events({ conversationId, lastSeq }: { conversationId: string; lastSeq: number }): ReactNode {
  const input = { conversationId, after: Math.max(0, lastSeq - eventsShown), limit: eventsShown };
  const events = useRows('events.list', input);
  if (events.error?.code === 'resync_required')
    return (
      <Empty title="Older than the event retention">
        Only recent events are kept as such; see the messages.
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
