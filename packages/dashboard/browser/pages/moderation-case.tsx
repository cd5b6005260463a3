import { Anchor, Button, Group, Stack, Text, Title } from '@mantine/core';
import FileIcon from 'lucide-react/icons/paperclip';
import DownIcon from 'lucide-react/icons/arrow-down';
import UpIcon from 'lucide-react/icons/arrow-up';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { ReportCase, ReportSnapshot } from '@parley/protocol';
import { useCall, useEnv } from '../api/hooks.ts';
import { useNames } from '../api/names.ts';
import { Icon } from '../ui/icon.tsx';
import { Person, useConversationName } from '../ui/people.tsx';
import { Failed, Loading } from '../ui/states.tsx';
import { Tag } from '../ui/tag.tsx';
import { Time } from '../ui/time.tsx';
import { Decide } from './moderation-decision.tsx';
import { UserHistory } from './moderation-history.tsx';
import { actionWords, countOf, reasonWords, statusTones } from './moderation-words.ts';

type NameOf = (id: string) => string;

/** One reported target: the message, its author and context, the reporters with their reasons, and the decision. */
export function CaseDetails(props: {
  of: ReportCase;
  keysOn: boolean;
  decided: (words: string) => void;
  previous: (() => void) | null;
  next: (() => void) | null;
}): ReactNode {
  const item = props.of;
  const { target, status } = item;
  const nameOf = useNames([target.userId, ...item.latest.map(({ reporterId }) => reporterId)]);
  return (
    <article className="desk-case" aria-labelledby="case-title">
      <Group justify="space-between" align="flex-start" wrap="nowrap" gap="xs">
        <CaseTitle item={item} nameOf={nameOf} />
        <Group gap={4} wrap="nowrap">
          <Step label="Previous" icon={UpIcon} go={props.previous} />
          <Step label="Next" icon={DownIcon} go={props.next} />
        </Group>
      </Group>
      <Group gap="xs">
        <Tag tone={statusTones[status]}>{status}</Tag>
        <Tag>{countOf(item.reports)}</Tag>
        {item.reasons.map(({ reason, count }) => (
          <Tag key={reason}>
            {reasonWords[reason]}
            {count > 1 ? ` × ${count}` : ''}
          </Tag>
        ))}
        <Text size="sm" c="dimmed">
          first <Time at={item.firstAt} />
        </Text>
      </Group>
      {target.kind === 'message' ? <Reported item={item} /> : null}
      {status === 'open' ? (
        <Decide of={item} keysOn={props.keysOn} decided={props.decided} nameOf={nameOf} />
      ) : (
        <Decision item={item} />
      )}
      <div className="desk-more">
        {target.kind === 'message' && target.conversationId !== null ? (
          <Surroundings conversationId={target.conversationId} seq={target.seq!} />
        ) : null}
        <div className="desk-case">
          <Reporters item={item} nameOf={nameOf} />
          {target.userId === null ? null : (
            <UserHistory userId={target.userId} except={item.id} nameOf={nameOf} />
          )}
        </div>
      </div>
    </article>
  );
}

const Step = (props: { label: string; icon: typeof UpIcon; go: (() => void) | null }): ReactNode => (
  <Button
    variant="default"
    size="compact-sm"
    aria-label={props.label}
    disabled={props.go === null}
    onClick={() => props.go?.()}
  >
    <Icon of={props.icon} />
  </Button>
);

function CaseTitle({ item: { target }, nameOf }: { item: ReportCase; nameOf: NameOf }): ReactNode {
  const env = useEnv();
  const { conversationId, userId, kind } = target;
  const place = useConversationName(conversationId) ?? 'a conversation';
  const person =
    userId === null ? (
      'the system'
    ) : (
      <Anchor component={Link} inherit href={`/${env}/users/${encodeURIComponent(userId)}`} dir="auto">
        {nameOf(userId)}
      </Anchor>
    );
  const where =
    conversationId === null ? null : (
      <Anchor
        component={Link}
        inherit
        href={`/${env}/conversations/${conversationId}?view=messages`}
        dir="auto"
      >
        {place}
      </Anchor>
    );
  return (
    <Title order={2} size="h3" id="case-title" className="wrap">
      {kind === 'message' ? (
        <>
          A message of {person} in {where}
        </>
      ) : kind === 'user' ? (
        <>The user {person}</>
      ) : (
        <>The conversation {where}</>
      )}
    </Title>
  );
}

function Reported({ item: { snapshot, laterSnapshots } }: { item: ReportCase }): ReactNode {
  if (!snapshot)
    return (
      <Text c="dimmed" fs="italic">
        The content is no longer available: the message was deleted for good, or its author was erased.
      </Text>
    );
  return (
    <Stack gap="xs" component="section" aria-label="The report">
      <Snapshot of={snapshot} />
      {laterSnapshots.map((later) => (
        <div key={later.version}>
          <Text size="sm" c="dimmed" mb={4}>
            edited and reported again, version {later.version}
          </Text>
          <Snapshot of={later} />
        </div>
      ))}
    </Stack>
  );
}

const Snapshot = ({ of: { text, files, poll } }: { of: ReportSnapshot }): ReactNode => (
  <Stack gap={4}>
    {text === null ? null : (
      <div className="bubble desk-bubble" dir="auto">
        {text}
      </div>
    )}
    {poll ? (
      <div className="bubble desk-bubble" dir="auto">
        <b>{poll.question}</b>
        {poll.options.map((option, i) => (
          <div key={i}>{option}</div>
        ))}
      </div>
    ) : null}
    {files.map((file, i) => (
      <Text key={i} size="sm" className="person">
        <Icon of={FileIcon} /> <span dir="auto">{file}</span>
      </Text>
    ))}
  </Stack>
);

const Decision = ({ item }: { item: ReportCase }): ReactNode => (
  <div className="box">
    <Text fw={550}>
      {item.status === 'dismissed' ? 'Dismissed' : 'Resolved'} <Time at={item.resolvedAt} />{' '}
      {item.resolvedBy === null ? 'by your server' : `by ${item.resolvedBy}`}
    </Text>
    <Text size="sm" c="dimmed">
      {item.actions.length === 0
        ? 'No action was taken.'
        : item.actions.map((a) => actionWords[a]).join(', ')}
    </Text>
    {item.resolution === null ? null : (
      <Text size="sm" mt={4} className="wrap" dir="auto">
        {item.resolution}
      </Text>
    )}
  </div>
);

function Reporters({ item, nameOf }: { item: ReportCase; nameOf: NameOf }): ReactNode {
  const more = item.reports - item.latest.length;
  return (
    <section aria-label="Reporters">
      <Title order={3} size="h5" mb={6}>
        Reporters
      </Title>
      <ul className="desk-plain">
        {item.latest.map(({ id, reporterId, reason, note, at }) => (
          <li key={id}>
            <Group gap="xs">
              {reporterId === null ? (
                <Tag>{reason === 'list' ? 'a word list' : 'your server'}</Tag>
              ) : (
                <Person id={reporterId} name={nameOf(reporterId)} />
              )}
              <Text size="sm" c="dimmed">
                {reasonWords[reason]} · <Time at={at} />
              </Text>
            </Group>
            {note === null ? null : (
              <Text size="sm" className="wrap" dir="auto">
                {note}
              </Text>
            )}
          </li>
        ))}
      </ul>
      {more > 0 ? (
        <Text size="sm" c="dimmed">
          and {more} before
        </Text>
      ) : null}
    </section>
  );
}

/** How many messages are shown before and after the reported one. */
const around = 5;

function Surroundings({ conversationId, seq }: { conversationId: string; seq: number }): ReactNode {
  // Other events have seqs, too, so a few more are asked for.
  const input = { conversationId, before: seq + 2 * around + 1, limit: 3 * around };
  const page = useCall('messages.list', input);
  const all = [...(page.data?.data ?? [])].reverse();
  const at = all.findIndex((message) => message.seq === seq);
  const shown = at < 0 ? all.slice(-around) : all.slice(Math.max(0, at - around), at + around + 1);
  const nameOf = useNames(shown.map(({ senderId }) => senderId));
  return (
    <section aria-label="The messages around it">
      <Title order={3} size="h5" mb={6}>
        Messages around it
      </Title>
      {page.error ? <Failed error={page.error} retry={() => void page.refetch()} /> : null}
      {!page.data && !page.error ? <Loading what="the messages around it" /> : null}
      <ol className="desk-plain desk-thread">
        {shown.map((message) => (
          <li key={message.id} data-reported={message.seq === seq || undefined}>
            <Group gap="xs">
              {message.senderId === null ? (
                <Tag>system</Tag>
              ) : (
                <Person id={message.senderId} name={nameOf(message.senderId)} />
              )}
              <Text size="sm" c="dimmed">
                <Time at={message.createdAt} />
              </Text>
              {message.seq === seq ? <Tag tone="warn">reported</Tag> : null}
              {(message.version ?? 1) > 1 ? <Tag>edited</Tag> : null}
            </Group>
            {message.deletedAt ? (
              <Text c="dimmed" fs="italic" size="sm">
                deleted <Time at={message.deletedAt} />
              </Text>
            ) : (
              <Text size="sm" className="wrap" dir="auto" style={{ whiteSpace: 'pre-wrap' }}>
                {message.text ??
                  message.poll?.question ??
                  (message.attachments.map((file) => file.name).join(', ') || 'no text')}
              </Text>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}
