import { Anchor, Button, Group } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link, Route, Switch } from 'wouter';
import type { Call } from '@parley/protocol';
import { useCall, useChange, useEnv, usePages } from '../api/hooks.ts';
import { useMay } from '../api/roles.ts';
import { ConfirmButton } from '../ui/confirm.tsx';
import { Id, Json } from '../ui/copy.tsx';
import { Facts } from '../ui/facts.tsx';
import { FilterBar, FilterChoice, FilterText, useFilters } from '../ui/filter.tsx';
import { List } from '../ui/list.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Empty, Failed, Loading } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';
import { Tag } from '../ui/tag.tsx';

export default function Calls(): ReactNode {
  return (
    <Switch>
      <Route path="/:env/calls/:callId">{({ callId }) => <CallPage callId={callId} />}</Route>
      <Route>
        <CallList />
      </Route>
    </Switch>
  );
}

const StateBadge = ({ call }: { call: Call }): ReactNode => (
  <Tag tone={call.status === 'ended' ? 'neutral' : 'ok'}>{call.endReason ?? call.status}</Tag>
);

function length(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

function CallList(): ReactNode {
  const env = useEnv();
  const { live, ...ids } = useFilters(['live', 'userId', 'conversationId']);
  const input = { limit: 50, ...ids, ...(live === undefined ? {} : { live: live === 'true' }) };
  const pages = usePages('calls.list', input, { everyMs: 5_000 });
  return (
    <Page title="Calls" call={['calls.list', input]}>
      <FilterBar names={['live', 'userId', 'conversationId']}>
        <FilterChoice
          name="live"
          label="State"
          options={[
            ['', 'all'],
            ['true', 'going on'],
            ['false', 'ended'],
          ]}
        />
        <FilterText name="userId" label="User" placeholder="alice" />
        <FilterText name="conversationId" label="Conversation" placeholder="conv_…" />
      </FilterBar>
      <List
        what="calls"
        pages={pages}
        rowKey={(call) => call.id}
        columns={[
          {
            title: 'Call',
            cell: (call) => (
              <Anchor component={Link} href={`/${env}/calls/${call.id}`}>
                {call.kind} by {call.createdBy}
              </Anchor>
            ),
          },
          { title: 'State', cell: (call) => <StateBadge call={call} /> },
          { title: 'Started', cell: (call) => <Time at={call.createdAt} /> },
          { title: 'Took', cell: (call) => length(call.durationSeconds), wide: true },
          { title: 'People', cell: (call) => call.participants.length, wide: true },
        ]}
        empty={<Empty title="No calls">They begin with the client SDK, or with POST /v1/calls.</Empty>}
      />
    </Page>
  );
}

function CallPage({ callId }: { callId: string }): ReactNode {
  const env = useEnv();
  const call = useCall('calls.get', { callId }, { everyMs: 3_000 });
  const end = useChange('calls.end');
  const may = useMay('calls.end');
  if (call.error) return <Failed error={call.error} retry={() => void call.refetch()} />;
  if (!call.data) return <Loading what="the call" />;
  const { conversationId, kind, createdBy, createdAt, answeredAt, endedAt, durationSeconds, metadata } =
    call.data;
  const going = call.data.status !== 'ended';
  return (
    <Page title={`${kind === 'video' ? 'Video' : 'Audio'} call`} call={['calls.get', { callId }]}>
      <Facts
        label="Call"
        of={[
          ['Id', <Id id={callId} />],
          ['State', <StateBadge call={call.data} />],
          [
            'Conversation',
            <Anchor component={Link} href={`/${env}/conversations/${conversationId}`}>
              {conversationId}
            </Anchor>,
          ],
          [
            'Started by',
            <Anchor component={Link} href={`/${env}/users/${encodeURIComponent(createdBy)}`}>
              {createdBy}
            </Anchor>,
          ],
          ['Started', <Time at={createdAt} />],
          ['Answered', <Time at={answeredAt} />],
          ['Ended', <Time at={endedAt} never="not yet" />],
          ['Took', length(durationSeconds)],
          ['Metadata', <Json value={metadata} label="Metadata" />],
        ]}
      />
      {may && going ? (
        <Group>
          <ConfirmButton
            label="End the call"
            title="End the call for everybody?"
            pending={end.isPending}
            error={end.error}
            onConfirm={() => end.mutateAsync({ callId })}
          >
            Everybody’s call ends at once.
          </ConfirmButton>
        </Group>
      ) : null}
      <Participants call={call.data} manage={may && going} />
    </Page>
  );
}

/** How the call went for each of them. */
function Participants({ call, manage }: { call: Call; manage: boolean }): ReactNode {
  const env = useEnv();
  const remove = useChange('calls.remove');
  const mute = useChange('calls.mute');
  const id = { callId: call.id };
  return (
    <Section title="People">
      {mute.error ? <Failed error={mute.error} /> : null}
      <List
        what="people in the call"
        pages={{
          items: call.participants,
          error: null,
          more: null,
          loadingMore: false,
          refresh: () => undefined,
        }}
        rowKey={(person) => person.userId}
        columns={[
          {
            title: 'User',
            cell: (person) => (
              <Anchor component={Link} href={`/${env}/users/${encodeURIComponent(person.userId)}`}>
                {person.userId}
              </Anchor>
            ),
          },
          { title: 'State', cell: (person) => person.state },
          { title: 'Invited', cell: (person) => <Time at={person.invitedAt} />, wide: true },
          { title: 'Joined', cell: (person) => <Time at={person.joinedAt} /> },
          { title: 'Left', cell: (person) => <Time at={person.leftAt} never="—" /> },
          {
            title: '',
            cell: ({ userId, state }) =>
              manage && state === 'joined' ? (
                <Group gap={4}>
                  <Button
                    size="compact-xs"
                    variant="default"
                    onClick={() => mute.mutate({ ...id, userId, source: 'mic' })}
                  >
                    Mute
                  </Button>
                  <ConfirmButton
                    label="Remove"
                    title={`Remove ${userId} from the call?`}
                    pending={remove.isPending}
                    error={remove.error}
                    onConfirm={() => remove.mutateAsync({ ...id, userId })}
                  >
                    The call ends for this person at once.
                  </ConfirmButton>
                </Group>
              ) : null,
          },
        ]}
        empty={<Empty title="Nobody" />}
      />
    </Section>
  );
}
