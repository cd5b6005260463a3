import { Anchor, Button, Group } from '@mantine/core';
import AudioIcon from 'lucide-react/icons/phone';
import VideoIcon from 'lucide-react/icons/video';
import type { ReactNode } from 'react';
import { Link, Route, Switch } from 'wouter';
import type { Call, CallParticipant } from '@parley/protocol';
import { useCall, useChange, useEnv, usePages } from '../api/hooks.ts';
import { useNames } from '../api/names.ts';
import { useMay } from '../api/roles.ts';
import { ConfirmButton } from '../ui/confirm.tsx';
import { Id, Json } from '../ui/copy.tsx';
import { Facts } from '../ui/facts.tsx';
import { FilterBar, FilterChoice, FilterText, useFilters } from '../ui/filter.tsx';
import { Icon } from '../ui/icon.tsx';
import { List, rows } from '../ui/list.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Avatar, namesOf, Person, useConversationName } from '../ui/people.tsx';
import { Empty, Failed, Loading } from '../ui/states.tsx';
import { Tag } from '../ui/tag.tsx';
import { Time } from '../ui/time.tsx';
import { Trail } from '../ui/trail.tsx';
import type { PointState, TrailStep } from '../ui/trail.tsx';

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

/** What became of a call, in words and in a tone. */
const outcomes: Record<
  NonNullable<Call['endReason']>,
  [text: string, tone: 'ok' | 'bad' | 'warn' | 'neutral']
> = {
  completed: ['completed', 'ok'],
  missed: ['missed', 'warn'],
  declined: ['declined', 'neutral'],
  cancelled: ['cancelled', 'neutral'],
  busy: ['busy', 'neutral'],
  failed: ['failed', 'bad'],
  ended_by_server: ['ended by your server', 'neutral'],
};

function State({ call: { endReason, status } }: { call: Call }): ReactNode {
  if (endReason === null) return <Tag tone="ok">{status === 'ringing' ? 'ringing' : 'going on'}</Tag>;
  const [text, tone] = outcomes[endReason];
  return <Tag tone={tone}>{text}</Tag>;
}

const length = (seconds: number): string =>
  `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;

const avatarsShown = 4;

const People = ({ of, nameOf }: { of: CallParticipant[]; nameOf: (id: string) => string }): ReactNode => (
  <span className="avatars">
    {of.slice(0, avatarsShown).map(({ userId }) => (
      <Avatar key={userId} id={userId} name={nameOf(userId)} small />
    ))}
  </span>
);

const kindOf = ({ kind }: Call): string => (kind === 'video' ? 'Video call' : 'Audio call');

function CallList(): ReactNode {
  const env = useEnv();
  const { live, ...ids } = useFilters(['live', 'userId', 'conversationId']);
  const input = { limit: 50, ...ids, ...(live === undefined ? {} : { live: live === 'true' }) };
  const pages = usePages('calls.list', input, { everyMs: 5_000 });
  const nameOf = useNames(
    pages.items?.flatMap((call) => call.participants.map(({ userId }) => userId)) ?? [],
  );
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
              <Anchor component={Link} href={`/${env}/calls/${call.id}`} className="person">
                <Icon of={call.kind === 'video' ? VideoIcon : AudioIcon} />
                <span dir="auto">
                  {kindOf(call)} by {nameOf(call.createdBy)}
                </span>
              </Anchor>
            ),
          },
          { title: 'State', cell: (call) => <State call={call} /> },
          { title: 'People', cell: (call) => <People of={call.participants} nameOf={nameOf} />, wide: true },
          { title: 'Started', cell: (call) => <Time at={call.createdAt} /> },
          {
            title: 'Duration',
            cell: (call) => (call.answeredAt === null ? '–' : length(call.durationSeconds)),
            wide: true,
          },
        ]}
        empty={<Empty title="No calls yet">Start a call with the client SDK or with POST /v1/calls.</Empty>}
      />
    </Page>
  );
}

const point = (happened: boolean, over: boolean): PointState =>
  happened ? 'done' : over ? 'failed' : 'open';

/** The steps of a call: rang, answered, talked, ended. */
function stepsOf(call: Call): TrailStep[] {
  const { createdAt, answeredAt, endedAt, durationSeconds, endReason } = call;
  const over = endedAt !== null;
  return [
    { name: 'Rang', state: 'done', note: <Time at={createdAt} exact /> },
    {
      name: 'Answered',
      state: point(answeredAt !== null, over),
      note: <Time at={answeredAt} exact never={over ? 'by nobody' : 'not yet'} />,
    },
    {
      name: 'Talked',
      state: point(answeredAt !== null, over),
      note: over
        ? answeredAt === null
          ? 'not at all'
          : length(durationSeconds)
        : answeredAt === null
          ? 'not yet'
          : 'now',
    },
    {
      name: 'Ended',
      state: point(over, false),
      note: endReason === null ? 'not yet' : <Time at={endedAt} exact />,
    },
  ];
}

function CallPage({ callId }: { callId: string }): ReactNode {
  const env = useEnv();
  const call = useCall('calls.get', { callId }, { everyMs: 3_000 });
  const end = useChange('calls.end');
  const may = useMay('calls.end');
  const nameOf = useNames(call.data?.participants.map(({ userId }) => userId) ?? []);
  const conversation = useConversationName(call.data?.conversationId ?? null);
  if (call.error) return <Failed error={call.error} retry={() => void call.refetch()} />;
  if (!call.data) return <Loading what="the call" />;
  const { conversationId, createdBy, metadata, participants } = call.data;
  const going = call.data.status !== 'ended';
  const names = participants.map(({ userId }) => nameOf(userId));
  return (
    <Page
      title={`${kindOf(call.data)} of ${namesOf(names.slice(0, 3), names.length)}`}
      call={['calls.get', { callId }]}
      about={
        <Group gap="xs">
          <State call={call.data} />
          <People of={participants} nameOf={nameOf} />
          <Id id={callId} />
        </Group>
      }
      actions={
        may && going ? (
          <ConfirmButton
            label="End the call"
            title="End the call for everybody?"
            pending={end.isPending}
            error={end.error}
            onConfirm={() => end.mutateAsync({ callId })}
          >
            The call ends at once for all participants.
          </ConfirmButton>
        ) : null
      }
    >
      <Trail label="The course of the call" steps={stepsOf(call.data)} />
      <Participants call={call.data} manage={may && going} nameOf={nameOf} />
      <Facts
        label="Call"
        of={[
          [
            'Conversation',
            <Anchor component={Link} href={`/${env}/conversations/${conversationId}`} dir="auto">
              {conversation ?? conversationId}
            </Anchor>,
          ],
          [
            'Started by',
            <Anchor component={Link} href={`/${env}/users/${encodeURIComponent(createdBy)}`}>
              <Person id={createdBy} name={nameOf(createdBy)} />
            </Anchor>,
          ],
          ...(Object.keys(metadata).length === 0
            ? []
            : [['Metadata', <Json value={metadata} label="Metadata" />] as [string, ReactNode]]),
        ]}
      />
    </Page>
  );
}

/** How the call went for each of them. */
function Participants(props: { call: Call; manage: boolean; nameOf: (id: string) => string }): ReactNode {
  const { call, manage, nameOf } = props;
  const env = useEnv();
  const remove = useChange('calls.remove');
  const mute = useChange('calls.mute');
  const id = { callId: call.id };
  return (
    <Section title="People">
      {mute.error ? <Failed error={mute.error} /> : null}
      <List
        what="people in the call"
        pages={rows(call.participants)}
        rowKey={(person) => person.userId}
        columns={[
          {
            title: 'User',
            cell: (person) => (
              <Anchor component={Link} href={`/${env}/users/${encodeURIComponent(person.userId)}`}>
                <Person id={person.userId} name={nameOf(person.userId)} />
              </Anchor>
            ),
          },
          {
            title: 'State',
            cell: ({ state }) => <Tag tone={state === 'joined' ? 'ok' : 'neutral'}>{state}</Tag>,
          },
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
                    title={`Remove ${nameOf(userId)} from the call?`}
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
