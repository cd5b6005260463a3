import { Button, Group, Modal, NativeSelect, Stack, Switch, Textarea, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { WordList, WordListSummary } from '@parley/protocol';
import { useCall, useChange, usePages } from '../api/hooks.ts';
import { useEnvironment, useMay } from '../api/roles.ts';
import { ConfirmButton } from '../ui/confirm.tsx';
import { DialogForm, NewButton } from '../ui/form.tsx';
import { List } from '../ui/list.tsx';
import { Section } from '../ui/page.tsx';
import { Setting } from '../ui/setting.tsx';
import { Empty, Failed, Loading } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';

export const ModerationRules = (): ReactNode => (
  <Stack gap="lg">
    <Lists />
    <Rules />
  </Stack>
);

const actions: Record<WordList['action'], string> = {
  reject: 'refuse the message',
  mask: 'replace the letters with stars',
  report: 'send the message and report it',
};
const places: Record<WordList['conversations'], string> = { all: 'everywhere', group: 'in groups' };

function Lists(): ReactNode {
  const pages = usePages('wordLists.list', { limit: 50 });
  const may = useMay('wordLists.set');
  const add = (again: boolean): ReactNode =>
    may ? (
      <NewButton label="New word list" again={again} form={(close) => <ListForm close={close} />} />
    ) : null;
  return (
    <Section title="Word lists" actions={add(false)}>
      <List
        what="word lists"
        pages={pages}
        rowKey={(list) => list.name}
        columns={[
          { title: 'Name', cell: (list) => <span className="mono">{list.name}</span> },
          { title: 'Action', cell: (list) => actions[list.action] },
          { title: 'Conversations', cell: (list) => places[list.conversations] },
          { title: 'Entries', cell: (list) => list.entries },
          { title: 'Changed', cell: (list) => <Time at={list.updatedAt} />, wide: true },
          { title: '', cell: (list) => (may ? <ListActions list={list} /> : null) },
        ]}
        empty={
          <Empty title="No word lists yet" action={add(true)}>
            Messages and edits of clients that match a list are refused, masked or reported.
          </Empty>
        }
      />
    </Section>
  );
}

function ListActions({ list: { name } }: { list: WordListSummary }): ReactNode {
  const [opened, setOpened] = useState(false);
  const remove = useChange('wordLists.delete');
  return (
    <Group gap={4}>
      <Button size="compact-sm" variant="default" onClick={() => setOpened(true)}>
        Edit
      </Button>
      <ConfirmButton
        label="Delete"
        title={`Delete the list ${name}?`}
        pending={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutateAsync({ name })}
      >
        New messages are no longer compared with this list. Existing messages stay as they are.
      </ConfirmButton>
      <Modal opened={opened} onClose={() => setOpened(false)} title={`Edit the list ${name}`}>
        <LoadedForm name={name} close={() => setOpened(false)} />
      </Modal>
    </Group>
  );
}

function LoadedForm({ name, close }: { name: string; close: () => void }): ReactNode {
  const list = useCall('wordLists.get', { name });
  if (list.error) return <Failed error={list.error} retry={() => void list.refetch()} />;
  if (!list.data) return <Loading what="its entries" />;
  return <ListForm list={list.data} close={close} />;
}

function ListForm({ list, close }: { list?: WordList; close: () => void }): ReactNode {
  const [name, setName] = useState(list?.name ?? '');
  const [action, setAction] = useState<WordList['action']>(list?.action ?? 'reject');
  const [conversations, setConversations] = useState<WordList['conversations']>(list?.conversations ?? 'all');
  const [entries, setEntries] = useState(list?.entries.join('\n') ?? '');
  const set = useChange('wordLists.set', { done: close });
  const given = entries
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  return (
    <DialogForm
      label="Save the list"
      pending={set.isPending}
      error={set.error}
      cancel={close}
      disabled={given.length === 0}
      submit={() => set.mutate({ name, action, conversations, entries: given })}
    >
      {list ? null : (
        <TextInput
          label="Name"
          description="Small letters, digits, - and _"
          pattern="[a-z0-9][a-z0-9_\-]{0,63}"
          required
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          data-autofocus
        />
      )}
      <NativeSelect
        label="Action"
        value={action}
        data={Object.entries(actions).map(([value, label]) => ({ value, label }))}
        onChange={(event) => setAction(event.currentTarget.value as WordList['action'])}
      />
      <NativeSelect
        label="Conversations"
        value={conversations}
        data={Object.entries(places).map(([value, label]) => ({ value, label }))}
        onChange={(event) => setConversations(event.currentTarget.value as WordList['conversations'])}
      />
      <Textarea
        label="Entries"
        description="One word or phrase in each line; * stands for any letters of one word"
        autosize
        minRows={4}
        maxRows={14}
        required
        value={entries}
        onChange={(event) => setEntries(event.currentTarget.value)}
      />
    </DialogForm>
  );
}

function Rules(): ReactNode {
  const env = useEnvironment();
  const may = useMay('environments.update');
  const update = useChange('environments.update');
  if (!env) return <Loading what="the environment" />;
  const { settings } = env;
  const set = (change: Partial<typeof settings>): void =>
    update.mutate({ environmentId: env.id, settings: { ...settings, ...change } });
  const feature = (name: 'reports' | 'blocks') => ({
    checked: !settings.disabledFeatures.includes(name),
    onChange: (on: boolean) =>
      set({
        disabledFeatures: [...settings.disabledFeatures.filter((one) => one !== name), ...(on ? [] : [name])],
      }),
  });
  const rules: [label: string, about: string, checked: boolean, onChange: (on: boolean) => void][] = [
    [
      'Owners of groups set roles',
      'Owners may appoint and dismiss moderators. Your server always may.',
      settings.ownersSetRoles,
      (on) => set({ ownersSetRoles: on }),
    ],
    [
      'People can report',
      'Messages, users and conversations that they see.',
      feature('reports').checked,
      feature('reports').onChange,
    ],
    [
      'People can block each other',
      'Existing blocks stay when this is off.',
      feature('blocks').checked,
      feature('blocks').onChange,
    ],
  ];
  return (
    <Section title="Rules">
      {rules.map(([label, about, checked, onChange]) => (
        <Setting key={label} label={label} about={about}>
          {(labelled) => (
            <Switch
              {...labelled}
              checked={checked}
              disabled={!may || update.isPending}
              onChange={(event) => onChange(event.currentTarget.checked)}
            />
          )}
        </Setting>
      ))}
      {update.error ? <Failed error={update.error} /> : null}
    </Section>
  );
}
