import { Anchor, Button, CloseButton, Group, Modal, NativeSelect, Stack, Text } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import ReplayIcon from 'lucide-react/icons/rotate-cw';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { WebhookAttempt, WebhookDelivery } from '@parley/protocol';
import { serverNow } from '../api/clock.ts';
import { useChange } from '../api/hooks.ts';
import type { usePages } from '../api/hooks.ts';
import { useMay } from '../api/roles.ts';
import { ConfirmButton } from '../ui/confirm.tsx';
import { Id } from '../ui/copy.tsx';
import { Icon } from '../ui/icon.tsx';
import { List } from '../ui/list.tsx';
import { Section } from '../ui/page.tsx';
import { Empty, Failed, RequestId } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';
import { Timeline } from '../ui/trail.tsx';

/** webhooks#schedule: the first attempt and nine more. */
const mostAttempts = 10;

type Pages = ReturnType<typeof usePages<'webhooks.deliveries'>>;

export function Deliveries({ webhookId, pages }: { webhookId: string; pages: Pages }): ReactNode {
  const [chosen, setChosen] = useState<string | null>(null);
  const wide = useMediaQuery('(min-width: 75em)', true, { getInitialValueInEffect: false });
  const delivery = pages.items?.find(({ id }) => id === chosen);
  const close = (): void => setChosen(null);
  const detail = delivery ? <Detail webhookId={webhookId} delivery={delivery} /> : null;
  return (
    <div className={delivery && wide ? 'two two-wide' : undefined}>
      <Section
        title="Deliveries"
        actions={
          <Text size="sm" c="dimmed">
            one cell is one attempt, {mostAttempts} at most
          </Text>
        }
      >
        <List
          what="deliveries"
          pages={pages}
          rowKey={({ id }) => id}
          selected={chosen}
          columns={[
            {
              title: 'Event',
              cell: ({ id, eventType }) => (
                <Anchor component="button" type="button" className="mono" onClick={() => setChosen(id)}>
                  {eventType}
                </Anchor>
              ),
            },
            { title: 'Attempts', cell: (one) => <Attempts delivery={one} /> },
            { title: 'Last answer', cell: (one) => <Answer attempt={one.attempts.at(-1)} /> },
            {
              title: 'Next',
              cell: ({ status, nextAttemptAt }) =>
                status === 'succeeded' ? (
                  'done'
                ) : (
                  <Time at={nextAttemptAt} never={status === 'failed' ? 'given up' : 'at once'} />
                ),
              wide: true,
            },
            { title: 'Created', cell: ({ createdAt }) => <Time at={createdAt} />, wide: true },
          ]}
          empty={<Empty title="No deliveries yet">Send a test to see whether the endpoint answers.</Empty>}
        />
      </Section>
      {detail === null || !wide ? null : (
        <aside className="box sticky" aria-label="One delivery">
          <Group justify="space-between" wrap="nowrap" align="flex-start">
            <b className="mono">{delivery!.eventType}</b>
            <CloseButton size="sm" aria-label="Close" onClick={close} />
          </Group>
          {detail}
        </aside>
      )}
      <Modal opened={detail !== null && !wide} onClose={close} title={delivery?.eventType}>
        {detail}
      </Modal>
    </div>
  );
}

const ok = ({ status }: WebhookAttempt): boolean => status !== null && status >= 200 && status < 300;
const answerOf = ({ error, status }: WebhookAttempt): string =>
  error ?? (status === null ? 'no answer' : String(status));

/** One cell for each attempt: filled (delivered), red (failed), hollow (next), empty (later). */
function Attempts({ delivery: { attempts, status } }: { delivery: WebhookDelivery }): ReactNode {
  const cells = Math.max(mostAttempts, attempts.length);
  const stateOf = (index: number): string | undefined => {
    const attempt = attempts[index];
    if (attempt) return ok(attempt) ? 'done' : 'failed';
    return index === attempts.length && status === 'pending' ? 'next' : undefined;
  };
  const failures = attempts.filter((attempt) => !ok(attempt)).length;
  const said = `${attempts.length} of ${mostAttempts}, ${failures} failed`;
  return (
    <span className="attempts" role="img" aria-label={said} title={said}>
      {Array.from({ length: cells }, (_, index) => (
        <i key={index} data-state={stateOf(index)} />
      ))}
    </span>
  );
}

const Answer = ({ attempt }: { attempt: WebhookAttempt | undefined }): ReactNode =>
  attempt ? (
    <span className={ok(attempt) ? 'mono frame-in' : 'mono failed'}>{answerOf(attempt)}</span>
  ) : (
    'none yet'
  );

/** The attempts, newest first, and the time of the next one. */
function Detail({ webhookId, delivery }: { webhookId: string; delivery: WebhookDelivery }): ReactNode {
  const replay = useChange('webhooks.replay');
  const may = useMay('webhooks.update');
  const { attempts, nextAttemptAt, status } = delivery;
  return (
    <Stack gap="md">
      <Id id={delivery.eventId} />
      <Timeline
        label="Attempts, newest first"
        of={[
          ...(status === 'pending'
            ? [
                {
                  key: 'next',
                  ok: null,
                  title: (
                    <>
                      Next <Time at={nextAttemptAt} never="at once" />
                    </>
                  ),
                  at: '',
                  children: `attempt ${attempts.length + 1} of ${mostAttempts}`,
                },
              ]
            : []),
          ...attempts.toReversed().map((attempt) => ({
            key: attempt.requestId,
            ok: ok(attempt),
            title: `${answerOf(attempt)}, after ${attempt.durationMs} ms`,
            at: <Time at={attempt.at} exact />,
            children: <RequestId id={attempt.requestId} />,
          })),
        ]}
      />
      {may && delivery.payloadAvailable ? (
        <Group>
          <Button
            variant="default"
            leftSection={<Icon of={ReplayIcon} size={14} />}
            loading={replay.isPending}
            onClick={() => replay.mutate({ webhookId, deliveryId: delivery.id })}
          >
            Replay this event
          </Button>
          <span role="status">{replay.isSuccess ? 'The event is sent again.' : ''}</span>
        </Group>
      ) : null}
      {replay.error ? <Failed error={replay.error} /> : null}
    </Stack>
  );
}

const spans = { '1': 'one hour ago', '24': 'a day ago', '72': 'three days ago' };

/** What failed since a time, and was not delivered later, is sent again: a thousand a call, until there is no more. */
export function ReplayFailed({ webhookId }: { webhookId: string }): ReactNode {
  const replay = useChange('webhooks.replayFailed');
  const [hours, setHours] = useState<string>('24');
  const [sent, setSent] = useState<number | null>(null);
  const run = async (): Promise<void> => {
    const since = new Date(serverNow() - Number(hours) * 3_600_000 + 60_000).toISOString();
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
        primary
        label="Replay failures"
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
