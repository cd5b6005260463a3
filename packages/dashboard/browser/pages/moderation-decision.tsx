import { Button, Checkbox, Group, NativeSelect, Stack, Textarea } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { ReportAction, ReportCase } from '@parley/protocol';
import { serverNow } from '../api/clock.ts';
import { useChange } from '../api/hooks.ts';
import { useKeys } from '../ui/keys.ts';
import { Failed } from '../ui/states.tsx';

const hour = 3_600_000;
const ends: [value: string, label: string][] = [
  [String(hour), 'for an hour'],
  [String(24 * hour), 'for a day'],
  [String(7 * 24 * hour), 'for a week'],
  [String(30 * 24 * hour), 'for 30 days'],
  ['', 'without an end'],
];

/** What fits the target, and the key of each. */
function offersFor({ target }: ReportCase, name: string): [ReportAction, key: string, label: string][] {
  const inGroup = target.kind === 'message' && !target.conversationId?.startsWith('conv_dm_');
  return [
    ...(target.kind === 'message' ? [['delete_message', 'd', 'Delete the message'] as const] : []),
    ...(target.userId === null
      ? []
      : [
          ['silence', 's', `Silence ${name} everywhere`] as const,
          ...(inGroup ? [['ban', 'b', `Ban ${name} from the group`] as const] : []),
          ['deactivate', '', `Deactivate ${name}`] as const,
        ]),
  ].map(([action, key, label]) => [action, key, label]);
}

/** Everything that is chosen is done at once, or nothing. */
export function Decide(props: {
  of: ReportCase;
  keysOn: boolean;
  decided: (words: string) => void;
  nameOf: (id: string) => string;
}): ReactNode {
  const { of: item } = props;
  const [chosen, setChosen] = useState<ReportAction[]>([]);
  const [lasts, setLasts] = useState(String(24 * hour));
  const [note, setNote] = useState('');
  const update = useChange('reports.update');
  const client = useQueryClient();
  const offers = offersFor(item, item.target.userId === null ? '' : props.nameOf(item.target.userId));
  const restricts = chosen.some((action) => action !== 'delete_message');
  const toggle = (action: ReportAction): void =>
    setChosen(chosen.includes(action) ? chosen.filter((one) => one !== action) : [...chosen, action]);
  const decide = (status: 'resolved' | 'dismissed'): void => {
    if (update.isPending) return;
    const until = new Date(serverNow() + Number(lasts)).toISOString();
    update.mutate(
      {
        reportId: item.id,
        status,
        ...(status === 'resolved' && chosen.length > 0 ? { actions: chosen } : {}),
        ...(status === 'resolved' && restricts && lasts !== '' ? { until } : {}),
        ...(note.trim() === '' ? {} : { note: note.trim() }),
      },
      {
        onSuccess: () => props.decided(status === 'resolved' ? 'Resolved.' : 'Dismissed.'),
        // Another moderator was faster: the list shows that decision.
        onError: ({ code }) => void (code === 'state_conflict' && client.invalidateQueries()),
      },
    );
  };
  const keyed = Object.fromEntries(
    offers.filter(([, key]) => key !== '').map(([action, key]) => [key, () => toggle(action)]),
  );
  useKeys(props.keysOn, { ...keyed, r: () => decide('resolved'), x: () => decide('dismissed') });
  const key = (letter: string): ReactNode =>
    props.keysOn && letter !== '' ? <kbd aria-hidden>{letter.toUpperCase()}</kbd> : null;
  return (
    <form
      className="box desk-decide"
      aria-label="Decision"
      onSubmit={(event) => {
        event.preventDefault();
        decide('resolved');
      }}
    >
      <Stack gap="sm">
        {offers.length === 0 ? null : (
          <Stack gap={8}>
            {offers.map(([action, letter, label]) => (
              <Checkbox
                key={action}
                checked={chosen.includes(action)}
                onChange={() => toggle(action)}
                label={
                  <span dir="auto">
                    {label} {key(letter)}
                  </span>
                }
              />
            ))}
          </Stack>
        )}
        {restricts ? (
          <NativeSelect
            label="How long"
            maw={220}
            value={lasts}
            data={ends.map(([value, label]) => ({ value, label }))}
            onChange={(event) => setLasts(event.currentTarget.value)}
          />
        ) : null}
        <Textarea
          label="Note for colleagues"
          autosize
          minRows={1}
          maxRows={5}
          maxLength={1_000}
          value={note}
          onChange={(event) => setNote(event.currentTarget.value)}
        />
        {update.error ? <Failed error={update.error} /> : null}
        <Group gap="xs">
          <Button type="submit" loading={update.isPending}>
            {chosen.length === 0 ? 'Resolve without action' : `Resolve, ${chosen.length} at once`} {key('r')}
          </Button>
          <Button variant="default" disabled={update.isPending} onClick={() => decide('dismissed')}>
            Dismiss {key('x')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
