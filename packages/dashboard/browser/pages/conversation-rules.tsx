import { Button, Group, NativeSelect, Stack, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { ConversationRules, ConversationRulesChange } from '@parley/protocol';
import { useChange } from '../api/hooks.ts';
import { useMay } from '../api/roles.ts';
import { Section } from '../ui/page.tsx';
import { Failed } from '../ui/states.tsx';

const some = [
  ['all', 'All members'],
  ['moderators', 'Owners and moderators'],
] as const;
/** The rules that are a choice; `open listed` is two rules at once, because only an open group is listed. */
const choices = [
  ['posting', 'May write', some],
  [
    'joining',
    'May join',
    [
      ['closed', 'Only added members'],
      ['link', 'Users with a link'],
      ['open', 'Everybody'],
      ['open listed', 'Everybody, and the group is listed'],
    ],
  ],
  ['pinning', 'May pin messages', some],
  ['mentionEveryone', 'May mention everyone', some],
  [
    'reacting',
    'May react',
    [
      ['all', 'All members'],
      ['none', 'Nobody'],
    ],
  ],
  [
    'defaultLevel',
    'Pushed to members who chose no level',
    [
      ['', 'As in the environment'],
      ['all', 'All messages'],
      ['mentions', 'Messages that mention them'],
    ],
  ],
] as const;

type Name = (typeof choices)[number][0];

const valuesOf = ({ listed, joining, ...rules }: ConversationRules): Record<Name, string> => ({
  posting: 'all',
  pinning: 'all',
  mentionEveryone: 'moderators',
  reacting: 'all',
  defaultLevel: '',
  ...rules,
  joining: listed ? 'open listed' : (joining ?? 'closed'),
});

/** The rules of a group, and a form to change them. */
export function Rules({
  conversationId,
  rules,
}: {
  conversationId: string;
  rules: ConversationRules;
}): ReactNode {
  const may = useMay('conversations.update');
  const update = useChange('conversations.update');
  const [values, setValues] = useState(() => valuesOf(rules));
  const [slowModeSeconds, setPause] = useState(rules.slowModeSeconds ?? 0);
  const save = (): void => {
    const { joining, defaultLevel, ...rest } = values;
    const change = {
      ...rest,
      joining: joining.split(' ')[0],
      listed: joining === 'open listed',
      defaultLevel: defaultLevel || null,
      slowModeSeconds,
    };
    update.mutate({ conversationId, rules: change as ConversationRulesChange });
  };
  return (
    <Section title="Rules">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          save();
        }}
      >
        <Stack gap="sm" maw="28rem">
          {choices.map(([name, label, options]) => (
            <NativeSelect
              key={name}
              label={label}
              data={options.map(([value, text]) => ({ value, label: text }))}
              value={values[name]}
              disabled={!may}
              onChange={({ currentTarget: { value } }) => setValues({ ...values, [name]: value })}
            />
          ))}
          <TextInput
            type="number"
            label="Slow mode: seconds between two messages of a member"
            min={0}
            max={21_600}
            value={slowModeSeconds}
            disabled={!may}
            onChange={({ currentTarget: { value } }) => setPause(Math.trunc(Number(value)))}
          />
        </Stack>
        {update.error ? <Failed error={update.error} /> : null}
        {may ? (
          <Group mt="md">
            <Button type="submit" loading={update.isPending}>
              Save the rules
            </Button>
            <span role="status">{update.isSuccess ? 'Saved.' : ''}</span>
          </Group>
        ) : null}
      </form>
    </Section>
  );
}
