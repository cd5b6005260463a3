import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import AlertIcon from 'lucide-react/icons/triangle-alert';
import SendIcon from 'lucide-react/icons/send';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { useLocation } from 'wouter';
import type { WebhookDelivery, WebhookEndpoint } from '@parley/protocol';
import { useCall, useChange, useEnv, usePages } from '../api/hooks.ts';
import { useMay } from '../api/roles.ts';
import { ConfirmButton } from '../ui/confirm.tsx';
import { Id, Secret } from '../ui/copy.tsx';
import { Icon } from '../ui/icon.tsx';
import { Numbers } from '../ui/numbers.tsx';
import { Page, Section } from '../ui/page.tsx';
import { SecretDialog } from '../ui/secret-dialog.tsx';
import { Failed, Loading } from '../ui/states.tsx';
import { Tag } from '../ui/tag.tsx';
import { Time } from '../ui/time.tsx';
import { Deliveries, ReplayFailed } from './webhook-deliveries.tsx';
import { EditEndpoint } from './webhook-form.tsx';

const shown = 50;

export function WebhookPage({ webhookId }: { webhookId: string }): ReactNode {
  const endpoint = useCall('webhooks.get', { webhookId });
  const pages = usePages('webhooks.deliveries', { webhookId, limit: shown }, { everyMs: 10_000 });
  if (endpoint.error) return <Failed error={endpoint.error} retry={() => void endpoint.refetch()} />;
  if (!endpoint.data) return <Loading what="the endpoint" />;
  const { url, events, description, createdAt } = endpoint.data;
  const newest = pages.items?.slice(0, shown);
  return (
    <Page
      title={url}
      mono
      call={['webhooks.get', { webhookId }]}
      actions={<Actions endpoint={endpoint.data} />}
      about={
        <Stack gap={4}>
          <Group gap="sm">
            <State endpoint={endpoint.data} newest={newest ?? []} />
            <span>{events.join(', ')}</span>
          </Group>
          {description === null || description === '' ? null : <span dir="auto">{description}</span>}
        </Stack>
      }
    >
      {newest === undefined || newest.length === 0 ? null : <Figures newest={newest} />}
      <Deliveries webhookId={webhookId} pages={pages} />
      <Manage endpoint={endpoint.data} />
      <Text size="sm" c="dimmed" component="div">
        <Id id={webhookId} /> · created <Time at={createdAt} />
      </Text>
    </Page>
  );
}

const attemptsOf = (deliveries: WebhookDelivery[]) =>
  deliveries.flatMap(({ attempts }) => attempts).sort((a, b) => a.at.localeCompare(b.at));

const worked = ({ status }: { status: number | null }): boolean =>
  status !== null && status >= 200 && status < 300;

/** The state of the endpoint, from its newest deliveries. */
function State({ endpoint, newest }: { endpoint: WebhookEndpoint; newest: WebhookDelivery[] }): ReactNode {
  if (endpoint.status === 'disabled')
    return (
      <>
        <Tag tone="bad">disabled</Tag>
        <span>
          <Time at={endpoint.disabledAt} />
          {endpoint.disabledReason ? `, ${endpoint.disabledReason}` : ''}
        </span>
      </>
    );
  const attempts = attemptsOf(newest);
  const last = attempts.findLastIndex(worked);
  const failing = attempts[last + 1];
  if (failing)
    return (
      <Tag tone="bad">
        <Icon of={AlertIcon} size={13} /> fails since <Time at={failing.at} />
      </Tag>
    );
  return (
    <Tag tone={attempts.length === 0 ? 'neutral' : 'ok'}>{attempts.length === 0 ? 'enabled' : 'works'}</Tag>
  );
}

function Figures({ newest }: { newest: WebhookDelivery[] }): ReactNode {
  const done = newest.filter(({ status }) => status === 'succeeded').length;
  const waiting = newest.filter(({ status }) => status === 'pending');
  const times = attemptsOf(newest)
    .filter(worked)
    .map(({ durationMs }) => durationMs)
    .sort((a, b) => a - b);
  const next = waiting.flatMap(({ nextAttemptAt }) => nextAttemptAt ?? []).sort()[0];
  return (
    <Numbers
      label={`The newest ${newest.length} deliveries`}
      of={[
        { label: 'Delivered', value: done, note: `of the newest ${newest.length}` },
        {
          label: 'Waiting',
          value: waiting.length,
          note: waiting.length === 0 ? 'nothing' : 'none is lost; attempts go on for about three days',
        },
        {
          label: 'Answers within',
          value: times.length === 0 ? '–' : `${times[Math.floor(times.length / 2)]} ms`,
          note: times.length === 0 ? 'no success among them' : 'half of the successful answers',
        },
        {
          label: 'Next attempt',
          value: next === undefined ? '–' : <Time at={next} />,
          note: next === undefined ? 'nothing waits' : 'ten attempts at most',
        },
      ]}
    />
  );
}

function Actions({ endpoint }: { endpoint: WebhookEndpoint }): ReactNode {
  const webhookId = endpoint.id;
  const test = useChange('webhooks.test');
  if (!useMay('webhooks.update')) return null;
  return (
    <Stack gap="xs" align="flex-end">
      <Group gap="xs">
        <Button
          variant="default"
          leftSection={<Icon of={SendIcon} />}
          loading={test.isPending}
          onClick={() => test.mutate({ webhookId })}
        >
          Send a test
        </Button>
        <EditEndpoint endpoint={endpoint} />
        <ReplayFailed webhookId={webhookId} />
      </Group>
      {test.data ? <TestResult delivery={test.data} /> : null}
      {test.error ? <Failed error={test.error} /> : null}
    </Stack>
  );
}

const TestResult = ({ delivery }: { delivery: WebhookDelivery }): ReactNode => {
  const attempt = delivery.attempts.at(-1);
  return (
    <Alert color={delivery.status === 'succeeded' ? 'teal' : 'red'} variant="light" role="status" py="xs">
      {attempt
        ? attempt.error
          ? `The test failed: ${attempt.error}.`
          : `The endpoint answered ${attempt.status} within ${attempt.durationMs} ms.`
        : 'The test is sent.'}
    </Alert>
  );
};

/** What is done seldom, and may end something. */
function Manage({ endpoint }: { endpoint: WebhookEndpoint }): ReactNode {
  const webhookId = endpoint.id;
  const env = useEnv();
  const [, navigate] = useLocation();
  const [secret, setSecret] = useState<string | null>(null);
  const update = useChange('webhooks.update');
  const rotate = useChange('webhooks.rotateSecret', { done: (made) => setSecret(made.secret) });
  const remove = useChange('webhooks.delete', { done: () => navigate(`/${env}/webhooks`) });
  if (!useMay('webhooks.update')) return null;
  return (
    <Section title="The endpoint">
      <Group gap="xs">
        <ConfirmButton
          harmless
          label="Rotate the secret"
          title="Rotate the signing secret?"
          pending={rotate.isPending}
          error={rotate.error}
          onConfirm={() => rotate.mutateAsync({ webhookId })}
        >
          Deliveries carry both signatures for 24 hours, so that you can switch without losing an event.
        </ConfirmButton>
        {endpoint.status === 'enabled' ? (
          <ConfirmButton
            label="Disable"
            title="Disable the endpoint?"
            pending={update.isPending}
            error={update.error}
            onConfirm={() => update.mutateAsync({ webhookId, status: 'disabled' })}
          >
            The endpoint gets no events until it is enabled again.
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
          label="Delete"
          title="Delete the endpoint?"
          pending={remove.isPending}
          error={remove.error}
          onConfirm={() => remove.mutateAsync({ webhookId })}
        >
          The endpoint gets no more events, and its list of deliveries is deleted.
        </ConfirmButton>
      </Group>
      {update.error ? <Failed error={update.error} /> : null}
      <SecretDialog
        opened={secret !== null}
        onClose={() => setSecret(null)}
        title="The new signing secret"
        secret
      >
        {secret === null ? null : <Secret value={secret} />}
      </SecretDialog>
    </Section>
  );
}
