import { Anchor, Button, Group, NativeSelect, Stack, Text, Textarea } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import FileIcon from 'lucide-react/icons/paperclip';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { Output } from '@parley/protocol';
import { call } from '../api/call.ts';
import type { ApiFailure } from '../api/call.ts';
import { useCall, useChange, useEnv } from '../api/hooks.ts';
import { useNames } from '../api/names.ts';
import { useMay } from '../api/roles.ts';
import { CurlButton } from '../ui/copy.tsx';
import { Icon } from '../ui/icon.tsx';
import { Section } from '../ui/page.tsx';
import { Person } from '../ui/people.tsx';
import { Empty, Failed, Loading } from '../ui/states.tsx';
import { Tag } from '../ui/tag.tsx';
import { Time } from '../ui/time.tsx';

type MessagePage = Output<'messages.list'>;

export function Messages(props: { conversationId: string; members: string[]; deleted: boolean }): ReactNode {
  const { conversationId } = props;
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
  const nameOf = useNames([
    ...props.members,
    ...(query.data?.pages.flatMap((page) =>
      page.data.flatMap(({ senderId, pinnedBy = null, mentions = [] }) => [
        senderId,
        pinnedBy,
        ...mentions.map(({ userId = null }) => userId),
      ]),
    ) ?? []),
  ]);
  const may = useMay('messages.send') && !props.deleted;
  if (query.error) return <Failed error={query.error} retry={() => void query.refetch()} />;
  if (!query.data) return <Loading what="messages" />;
  const messages = query.data.pages.flatMap((page) => page.data);
  return (
    <Section
      title="Messages"
      actions={
        <>
          <Tag>The audit log records that you read this</Tag>
          <CurlButton name="messages.list" input={{ conversationId, limit: 50 }} />
        </>
      }
    >
      {may ? <Compose conversationId={conversationId} members={props.members} nameOf={nameOf} /> : null}
      {messages.length === 0 ? <Empty title="No messages yet" /> : null}
      <Stack
        component="ol"
        gap="sm"
        p={0}
        m={0}
        style={{ listStyle: 'none' }}
        aria-label="Messages, newest first"
      >
        {messages.map((message) => (
          <Stack key={message.id} component="li" gap={4}>
            <Group gap="xs">
              {message.senderId === null ? (
                <Tag>system</Tag>
              ) : (
                <Text fw={600} component="div">
                  <Person id={message.senderId} name={nameOf(message.senderId)} />
                </Text>
              )}
              <Text size="sm" c="dimmed">
                seq {message.seq} · <Time at={message.createdAt} />
              </Text>
              {(message.version ?? 1) > 1 ? <Tag tone="neutral">version {message.version}</Tag> : null}
              {message.pinnedAt ? (
                <Tag>
                  pinned by {message.pinnedBy == null ? 'the server' : nameOf(message.pinnedBy)},{' '}
                  <Time at={message.pinnedAt} />
                </Tag>
              ) : null}
              <Anchor component={Link} size="sm" href={`/${env}/delivery?messageId=${message.id}`}>
                Did it arrive?
              </Anchor>
            </Group>
            {message.deletedAt ? (
              <Text c="dimmed" fs="italic">
                deleted <Time at={message.deletedAt} />
              </Text>
            ) : message.text === null ? null : (
              <div className="bubble" dir="auto">
                {message.text}
              </div>
            )}
            {message.mentions ? (
              <Text size="sm" c="dimmed">
                mentions{' '}
                {message.mentions
                  .map(({ type, userId }) => (userId === undefined ? type : nameOf(userId)))
                  .join(', ')}
              </Text>
            ) : null}
            {message.attachments.map((file) => (
              <Text key={file.id} size="sm" className="person">
                <Icon of={FileIcon} /> {file.name} ({file.mimeType}, {file.size} bytes
                {file.durationMs ? `, ${(file.durationMs / 1000).toFixed(1)} s` : ''})
              </Text>
            ))}
            {message.poll ? <PollResults poll={message.poll} votes={message.reactions?.votes ?? []} /> : null}
            {message.reactions?.total ? (
              <Text size="sm">
                {message.reactions.counts.map(({ emoji, count }) => `${emoji} ${count}`).join(', ')}
              </Text>
            ) : null}
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
            Show older messages
          </Button>
        </Group>
      ) : null}
    </Section>
  );
}

type Shown = MessagePage['data'][number];

/** What a poll asks, and how many voted for what; nobody is named. */
function PollResults(props: {
  poll: NonNullable<Shown['poll']>;
  votes: NonNullable<NonNullable<Shown['reactions']>['votes']>;
}): ReactNode {
  const { poll, votes } = props;
  const over =
    poll.closedAt !== undefined || (poll.closesAt !== undefined && Date.parse(poll.closesAt) <= Date.now());
  const tags = [
    ...(over ? ['closed'] : []),
    ...(poll.anonymous ? ['anonymous'] : []),
    ...(poll.multiple ? ['several choices'] : []),
  ];
  return (
    <div dir="auto">
      <Group gap="xs">
        <Text size="sm" fw={600}>
          Poll: {poll.question}
        </Text>
        {tags.map((tag) => (
          <Tag key={tag} tone="neutral">
            {tag}
          </Tag>
        ))}
      </Group>
      {poll.options.map(({ id, text }) => (
        <Text key={id} size="sm">
          {text}: {votes.find((v) => v.option === id)?.count ?? 0}
        </Text>
      ))}
    </div>
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

/** Sends as a member, or as the system. */
function Compose(props: {
  conversationId: string;
  members: string[];
  nameOf: (id: string) => string;
}): ReactNode {
  const { conversationId, members, nameOf } = props;
  const [senderId, setSenderId] = useState('');
  const [text, setText] = useState('');
  const send = useChange('messages.send', { done: () => setText('') });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        send.mutate({ conversationId, text, ...(senderId === '' ? {} : { senderId }) });
      }}
    >
      <Group align="flex-end" gap="xs">
        <NativeSelect
          label="Send as"
          value={senderId}
          onChange={(event) => setSenderId(event.currentTarget.value)}
          data={[
            { value: '', label: 'the system' },
            ...members.map((id) => ({ value: id, label: nameOf(id) })),
          ]}
        />
        <Textarea
          label="Message"
          autosize
          minRows={1}
          maxRows={6}
          required
          flex="1 1 220px"
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
        <Button type="submit" loading={send.isPending}>
          Send the message
        </Button>
      </Group>
      {send.error ? <Failed error={send.error} /> : null}
    </form>
  );
}
