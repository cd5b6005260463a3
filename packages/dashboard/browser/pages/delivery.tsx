import { Anchor, Button, Group, Stack, Text } from '@mantine/core';
import ArrivedIcon from 'lucide-react/icons/mail-check';
import BellIcon from 'lucide-react/icons/bell-ring';
import WaitsIcon from 'lucide-react/icons/clock-alert';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { Link, useSearchParams } from 'wouter';
import type { DeliveryDiagnosis } from '@parley/protocol';
import { useCall, useEnv } from '../api/hooks.ts';
import { useNames } from '../api/names.ts';
import { Pairs } from '../ui/facts.tsx';
import { Field } from '../ui/field.tsx';
import { useFilters } from '../ui/filter.tsx';
import { Icon } from '../ui/icon.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Avatar, useConversationName } from '../ui/people.tsx';
import { Empty, Failed, Loading } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';
import { Timeline, Trail } from '../ui/trail.tsx';
import { detailOf, sentenceOf, stepsOf } from './delivery-words.ts';

/** Why somebody did, or did not, get a message. */
export default function Delivery(): ReactNode {
  const { messageId, userId } = useFilters(['messageId', 'userId']);
  return (
    <Page
      title="Did it arrive?"
      call={['diagnostics.delivery', { messageId: messageId ?? 'msg_…', userId: userId ?? 'alice' }]}
    >
      <Ask key={`${messageId} ${userId}`} messageId={messageId ?? ''} userId={userId ?? ''} />
      {messageId !== undefined && userId !== undefined ? (
        <Diagnosis messageId={messageId} userId={userId} />
      ) : (
        <Empty title="Choose a message and a user">
          You see the commit of the message, the user’s sockets, the pushes and webhooks, and whether the
          message was delivered and read. You do not see its content.
        </Empty>
      )}
    </Page>
  );
}

function Ask(given: { messageId: string; userId: string }): ReactNode {
  const [, setParams] = useSearchParams();
  const [messageId, setMessageId] = useState(given.messageId);
  const [userId, setUserId] = useState(given.userId);
  return (
    <form
      className="ask"
      role="search"
      aria-label="Message and user"
      onSubmit={(event) => {
        event.preventDefault();
        setParams({ messageId: messageId.trim(), userId: userId.trim() });
      }}
    >
      <Field
        label="Message"
        placeholder="msg_…"
        autoComplete="off"
        required
        withAsterisk={false}
        value={messageId}
        set={setMessageId}
      />
      <Field
        label="User"
        placeholder="alice"
        autoComplete="off"
        required
        withAsterisk={false}
        value={userId}
        set={setUserId}
      />
      <Button type="submit">Look</Button>
    </form>
  );
}

function Diagnosis(input: { messageId: string; userId: string }): ReactNode {
  const env = useEnv();
  const found = useCall('diagnostics.delivery', input, { everyMs: 5_000 });
  const nameOf = useNames([input.userId, found.data?.message.senderId ?? null]);
  const conversation = useConversationName(found.data?.message.conversationId ?? null);
  if (found.error) return <Failed error={found.error} retry={() => void found.refetch()} />;
  if (!found.data) return <Loading what="the timeline" />;
  const { message, timeline, kept } = found.data;
  return (
    <>
      <Verdict of={found.data} name={nameOf(input.userId)} />
      <Trail label="The way of the message" steps={stepsOf(found.data)} />
      <div className="two">
        <Section title="Timeline">
          <Timeline
            label="Events, oldest first"
            of={timeline.map((step, index) => ({
              key: String(index),
              ok: isMark(step) && !step.ok ? null : step.ok,
              title: step.title,
              at: <Time at={step.at} exact never={timeless(step)} />,
              children: detailOf(step),
            }))}
          />
          <Text size="sm" c="dimmed">
            Message {message.seq} of{' '}
            <Anchor
              component={Link}
              href={`/${env}/conversations/${message.conversationId}`}
              inherit
              underline="always"
            >
              <bdi>{conversation ?? message.conversationId}</bdi>
            </Anchor>
            , sent <Time at={message.createdAt} /> by{' '}
            {message.senderId === null ? 'the system' : nameOf(message.senderId)}. Sockets are kept since{' '}
            <Time at={kept.sessionsSince} />, pushes since <Time at={kept.pushSince} />, webhooks since{' '}
            <Time at={kept.webhooksSince} />.
          </Text>
        </Section>
        <Recipient of={found.data} name={nameOf(input.userId)} />
      </div>
    </>
  );
}

type Step = DeliveryDiagnosis['timeline'][number];

/** What may still happen. */
const isMark = ({ kind }: Step): boolean => kind === 'delivered' || kind === 'read';

/** What stands in the place of the time where there is none. */
function timeless(step: Step): string {
  if (!isMark(step)) return '';
  return step.ok ? 'time not kept' : 'not yet';
}

function Verdict({ of, name }: { of: DeliveryDiagnosis; name: string }): ReactNode {
  const env = useEnv();
  const { title, text, arrived, push } = sentenceOf(of, name);
  return (
    <div className="verdict" data-tone={arrived ? 'ok' : 'warn'} role="status">
      <Icon of={arrived ? ArrivedIcon : WaitsIcon} size={22} />
      <div>
        <h2>{title}</h2>
        <p>{text}</p>
      </div>
      {push ? (
        <Button
          component={Link}
          href={`/${env}/push`}
          variant="default"
          leftSection={<Icon of={BellIcon} size={15} />}
        >
          Set up push
        </Button>
      ) : null}
    </div>
  );
}

const mentionWords = {
  user: 'by name',
  everyone: 'with everyone',
  here: 'with @here',
  none: 'no',
};

const pushedWords = ({ level, mutedUntil }: DeliveryDiagnosis['member']): string =>
  level === null
    ? '–'
    : level === 'none'
      ? `nothing (muted${mutedUntil === null ? '' : ` until ${mutedUntil}`})`
      : level;

/** The user as things are now. */
function Recipient({ of: { user, member }, name }: { of: DeliveryDiagnosis; name: string }): ReactNode {
  const env = useEnv();
  const userId = user.id;
  const sockets = useCall('users.sessions', { userId, limit: 20 }, { everyMs: 10_000 }).data?.data;
  const devices = useCall('users.devices', { userId }).data?.data;
  const open = sockets?.filter((socket) => socket.closedAt === null).length;
  return (
    <Section title="The user now">
      <div className="box">
        <Group gap="sm" mb="sm" wrap="nowrap">
          <Avatar id={userId} name={name} />
          <Stack gap={0} miw={0}>
            <Anchor component={Link} href={`/${env}/users/${encodeURIComponent(userId)}`} fw={600} dir="auto">
              {name}
            </Anchor>
            {name === userId ? null : <span className="mono">{userId}</span>}
          </Stack>
        </Group>
        <Pairs
          of={[
            ['Read up to', member.lastReadSeq ?? 'not a member'],
            ['Received up to', member.lastDeliveredSeq ?? '–'],
            ['Pushes', pushedWords(member)],
            ['Mentioned', mentionWords[member.mention ?? 'none']],
            ['Open sockets', open ?? '…'],
            ['Devices', devices?.length ?? '…'],
            [
              'Last connected',
              sockets === undefined ? '…' : <Time at={sockets[0]?.openedAt} never="not in 7 days" />,
            ],
          ]}
        />
      </div>
    </Section>
  );
}
