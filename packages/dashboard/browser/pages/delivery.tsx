import { Alert, Anchor, Code, Group, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { DeliveryDiagnosis } from '@parley/protocol';
import { useCall, useEnv } from '../api/hooks.ts';
import { FilterBar, FilterText, useFilters } from '../ui/filter.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Empty, Failed, Loading } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';

/** Why somebody did, or did not, get a message. */
export default function Delivery(): ReactNode {
  const { messageId, userId } = useFilters(['messageId', 'userId']);
  const asked = messageId !== undefined && userId !== undefined;
  return (
    <Page
      title="Did it arrive?"
      call={['diagnostics.delivery', { messageId: messageId ?? 'msg_…', userId: userId ?? 'alice' }]}
    >
      <FilterBar names={['messageId', 'userId']}>
        <FilterText name="messageId" label="Message" placeholder="msg_…" />
        <FilterText name="userId" label="User" placeholder="alice" />
      </FilterBar>
      {asked ? (
        <Diagnosis messageId={messageId} userId={userId} />
      ) : (
        <Empty title="Which message, and for whom?">
          You see when it was committed, which sockets the user had, what went out by push and webhook, and
          whether it was delivered and read. Never what it says.
        </Empty>
      )}
    </Page>
  );
}

const good = new Set<DeliveryDiagnosis['verdict']>([
  'own_message',
  'read',
  'delivered',
  'sent_to_socket',
  'pushed',
]);

function Diagnosis(input: { messageId: string; userId: string }): ReactNode {
  const env = useEnv();
  const found = useCall('diagnostics.delivery', input, { everyMs: 5_000 });
  if (found.error) return <Failed error={found.error} retry={() => void found.refetch()} />;
  if (!found.data) return <Loading what="the timeline" />;
  const { summary, verdict, message, member, timeline, kept } = found.data;
  return (
    <>
      <Alert color={good.has(verdict) ? 'teal' : 'yellow'} variant="light" role="status" title={summary}>
        <Group gap="md">
          <Text size="sm">
            Message {message.seq} of{' '}
            <Anchor
              component={Link}
              href={`/${env}/conversations/${message.conversationId}`}
              inherit
              c="inherit"
              underline="always"
            >
              {message.conversationId}
            </Anchor>
            , sent <Time at={message.createdAt} /> by {message.senderId ?? 'the system'}.
          </Text>
          <Text size="sm">
            {member.lastReadSeq === null
              ? 'Not a member now.'
              : `Has read up to ${member.lastReadSeq}, received up to ${member.lastDeliveredSeq}${member.muted ? ', and muted the conversation' : ''}.`}
          </Text>
        </Group>
      </Alert>
      <Section title="What happened">
        <ol className="trail">
          {timeline.map((step, index) => (
            <li key={index} data-ok={step.ok ?? undefined}>
              <Group justify="space-between" gap="xs">
                <Text fw={600}>{step.title}</Text>
                <Text size="sm" c="dimmed">
                  <Time at={step.at} never="time not kept" />
                </Text>
              </Group>
              <Text size="sm" c="dimmed">
                {step.kind}
                {step.ok === false ? ', failed' : ''}
              </Text>
              {Object.keys(step.detail).length > 0 ? (
                <Code style={{ overflowWrap: 'anywhere', whiteSpace: 'pre-wrap' }}>
                  {Object.entries(step.detail)
                    .map(
                      ([name, value]) =>
                        `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
                    )
                    .join(', ')}
                </Code>
              ) : null}
            </li>
          ))}
        </ol>
        <Text size="sm" c="dimmed">
          Kept: sockets since <Time at={kept.sessionsSince} />, pushes since <Time at={kept.pushSince} />,
          webhooks since <Time at={kept.webhooksSince} />.
        </Text>
      </Section>
    </>
  );
}
