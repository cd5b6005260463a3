import { Alert, Button, Code, Group, Modal, NativeSelect, Stack, Table, Text } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { useLocation } from 'wouter';
import type { WebhookDelivery, WebhookEndpoint } from '@parley/protocol';
import { useCall, useChange, useEnv, usePages } from '../api/hooks.ts';
import { useMay } from '../api/roles.ts';
import { ConfirmButton } from '../ui/confirm.tsx';
import { Id, Secret } from '../ui/copy.tsx';
import { Facts } from '../ui/facts.tsx';
import { List } from '../ui/list.tsx';
import { Page, Section } from '../ui/page.tsx';
import { SecretDialog } from '../ui/secret-dialog.tsx';
import { Empty, Failed, Loading, RequestId } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';
import { StatusBadge } from '../ui/status-badge.tsx';
import { EditEndpoint } from './webhook-form.tsx';

export function WebhookPage({ webhookId }: { webhookId: string }): ReactNode {
  const endpoint = useCall('webhooks.get', { webhookId });
  if (endpoint.error) return <Failed error={endpoint.error} retry={() => void endpoint.refetch()} />;
  if (!endpoint.data) return <Loading what="the endpoint" />;
  const { url, status, events, description, createdAt, disabledAt, disabledReason } = endpoint.data;
  return (
    <Page title="Webhook endpoint" call={['webhooks.get', { webhookId }]}>
      <Facts
        label="Webhook endpoint"
        of={[
          ['Id', <Id id={webhookId} />],
          ['URL', url],
          ['Status', <StatusBadge status={status} />],
          ...(disabledAt
            ? [
                [
                  'Disabled',
                  <>
                    <Time at={disabledAt} /> {disabledReason ? `(${disabledReason})` : ''}
                  </>,
                ] as [string, ReactNode],
              ]
            : []),
          ['Events', events.join(', ')],
          ['Description', description ?? '—'],
          ['Created', <Time at={createdAt} />],
        ]}
      />
      <Actions endpoint={endpoint.data} />
      <Deliveries webhookId={webhookId} />
    </Page>
  );
}

function Actions({ endpoint }: { endpoint: WebhookEndpoint }): ReactNode {
  const webhookId = endpoint.id;
  const env = useEnv();
  const [, navigate] = useLocation();
  const [secret, setSecret] = useState<string | null>(null);
  const update = useChange('webhooks.update');
  const test = useChange('webhooks.test');
  const rotate = useChange('webhooks.rotateSecret', { done: (made) => setSecret(made.secret) });
  const remove = useChange('webhooks.delete', { done: () => navigate(`/${env}/webhooks`) });
  if (!useMay('webhooks.update')) return null;
  return (
    <Stack gap="xs">
      <Group gap="xs">
        <Button size="compact-sm" loading={test.isPending} onClick={() => test.mutate({ webhookId })}>
          Send a test
        </Button>
        <EditEndpoint endpoint={endpoint} />
        {endpoint.status === 'enabled' ? (
          <ConfirmButton
            label="Disable"
            title="Disable the endpoint?"
            pending={update.isPending}
            error={update.error}
            onConfirm={() => update.mutateAsync({ webhookId, status: 'disabled' })}
          >
            It is told of nothing that happens until it is enabled again.
          </ConfirmButton>
        ) : (
          <Button
            size="compact-sm"
            variant="default"
            loading={update.isPending}
            onClick={() => update.mutate({ webhookId, status: 'enabled' })}
          >
            Enable
          </Button>
        )}
        <ConfirmButton
          harmless
          label="Rotate the secret"
          title="Rotate the signing secret?"
          pending={rotate.isPending}
          error={rotate.error}
          onConfirm={() => rotate.mutateAsync({ webhookId })}
        >
          Deliveries carry both signatures for 24 hours, so that you can change over without losing one.
        </ConfirmButton>
        <ConfirmButton
          label="Delete"
          title="Delete the endpoint?"
          pending={remove.isPending}
          error={remove.error}
          onConfirm={() => remove.mutateAsync({ webhookId })}
        >
          It is told of nothing any more, and its delivery log goes.
        </ConfirmButton>
      </Group>
      {test.data ? <TestResult delivery={test.data} /> : null}
      {(test.error ?? update.error) ? <Failed error={(test.error ?? update.error)!} /> : null}
      <SecretDialog
        opened={secret !== null}
        onClose={() => setSecret(null)}
        title="The new signing secret"
        secret
      >
        {secret === null ? null : <Secret value={secret} />}
      </SecretDialog>
    </Stack>
  );
}

const TestResult = ({ delivery }: { delivery: WebhookDelivery }): ReactNode => {
  const attempt = delivery.attempts.at(-1);
  return (
    <Alert color={delivery.status === 'succeeded' ? 'teal' : 'red'} variant="light" role="status">
      {attempt
        ? attempt.error
          ? `The test failed: ${attempt.error}.`
          : `The endpoint answered ${attempt.status} within ${attempt.durationMs} ms.`
        : 'The test is on its way.'}
    </Alert>
  );
};

function Deliveries({ webhookId }: { webhookId: string }): ReactNode {
  const pages = usePages('webhooks.deliveries', { webhookId, limit: 50 }, { everyMs: 10_000 });
  const replay = useChange('webhooks.replay');
  const may = useMay('webhooks.update');
  return (
    <Section title="Deliveries" actions={<ReplayFailed webhookId={webhookId} />}>
      {replay.error ? <Failed error={replay.error} /> : null}
      <List
        what="deliveries"
        pages={pages}
        rowKey={(delivery) => delivery.id}
        columns={[
          { title: 'Event', cell: (delivery) => <Code>{delivery.eventType}</Code> },
          { title: 'Status', cell: (delivery) => <StatusBadge status={delivery.status} /> },
          { title: 'Attempts', cell: (delivery) => <Attempts delivery={delivery} /> },
          { title: 'Created', cell: (delivery) => <Time at={delivery.createdAt} />, wide: true },
          {
            title: 'Next attempt',
            cell: (delivery) => <Time at={delivery.nextAttemptAt} never="none" />,
            wide: true,
          },
          {
            title: 'Replay',
            cell: (delivery) =>
              may && delivery.payloadAvailable ? (
                <Button
                  size="compact-xs"
                  variant="default"
                  onClick={() => replay.mutate({ webhookId, deliveryId: delivery.id })}
                >
                  Replay
                </Button>
              ) : null,
          },
        ]}
        empty={
          <Empty title="Nothing was delivered yet">Send a test to see whether the endpoint answers.</Empty>
        }
      />
    </Section>
  );
}

function Attempts({ delivery }: { delivery: WebhookDelivery }): ReactNode {
  const [shown, setShown] = useState(false);
  const last = delivery.attempts.at(-1);
  if (!last) return 'none yet';
  return (
    <>
      <Button size="compact-xs" variant="subtle" onClick={() => setShown(true)}>
        {delivery.attempts.length} · {last.status ?? 'no answer'}
      </Button>
      <Modal opened={shown} onClose={() => setShown(false)} title={`Attempts at ${delivery.id}`} size="lg">
        <Text size="sm">
          Event <Code>{delivery.eventId}</Code>
        </Text>
        <Table aria-label="Attempts">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>At</Table.Th>
              <Table.Th>Answer</Table.Th>
              <Table.Th>Took</Table.Th>
              <Table.Th>Request</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {delivery.attempts.map((attempt) => (
              <Table.Tr key={attempt.requestId}>
                <Table.Td>
                  <Time at={attempt.at} />
                </Table.Td>
                <Table.Td>{attempt.error ?? attempt.status}</Table.Td>
                <Table.Td>{attempt.durationMs} ms</Table.Td>
                <Table.Td>
                  <RequestId id={attempt.requestId} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Modal>
    </>
  );
}

const spans = { '1': 'one hour ago', '24': 'a day ago', '72': 'three days ago' };

/** What failed since a time, and was not delivered later, is sent again: a thousand a call, until there is no more. */
function ReplayFailed({ webhookId }: { webhookId: string }): ReactNode {
  const replay = useChange('webhooks.replayFailed');
  const [hours, setHours] = useState<string>('24');
  const [sent, setSent] = useState<number | null>(null);
  const run = async (): Promise<void> => {
    const since = new Date(Date.now() - Number(hours) * 3_600_000 + 60_000).toISOString();
    let total = 0;
    for (let more = true; more;) {
      const answer = await replay.mutateAsync({ webhookId, since });
      total += answer.replayed;
      more = answer.more && answer.replayed > 0;
    }
    setSent(total);
  };
  if (!useMay('webhooks.replayFailed')) return null;
  return (
    <>
      <span role="status">{sent === null ? '' : `${sent} on their way again.`}</span>
      <ConfirmButton
        harmless
        label="Replay failed ones"
        title="Replay failed deliveries?"
        pending={replay.isPending}
        error={replay.error}
        onConfirm={run}
      >
        <Stack gap="xs">
          Every event whose delivery failed since then, and that was not delivered later, is sent again.
          <NativeSelect
            label="Since"
            value={hours}
            onChange={(event) => setHours(event.currentTarget.value)}
            data={Object.entries(spans).map(([value, label]) => ({ value, label }))}
          />
        </Stack>
      </ConfirmButton>
    </>
  );
}
