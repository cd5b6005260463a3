import { Button, Group, Modal, Radio, Stack } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { useLocation } from 'wouter';
import { useChange, useEnv } from '../api/hooks.ts';
import { Field } from '../ui/field.tsx';
import { Failed } from '../ui/states.tsx';

/** Ids of users, with commas or spaces between them. */
export const idsOf = (text: string): string[] => text.split(/[\s,]+/u).filter((id) => id !== '');

export function NewConversation({ opened, close }: { opened: boolean; close: () => void }): ReactNode {
  return (
    <Modal opened={opened} onClose={close} title="New conversation">
      <Form close={close} />
    </Modal>
  );
}

function Form({ close }: { close: () => void }): ReactNode {
  const env = useEnv();
  const [, navigate] = useLocation();
  const [type, setType] = useState<'direct' | 'group'>('direct');
  const [members, setMembers] = useState('');
  const [name, setName] = useState('');
  const create = useChange('conversations.create', {
    done: ({ id }) => {
      close();
      navigate(`/${env}/conversations/${id}`);
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate({ type, members: idsOf(members), ...(name === '' ? {} : { name }) });
      }}
    >
      <Stack>
        <Radio.Group label="Kind" value={type} onChange={(value) => setType(value as 'direct' | 'group')}>
          <Group mt={4}>
            <Radio value="direct" label="between two" />
            <Radio value="group" label="group" />
          </Group>
        </Radio.Group>
        <Field
          label="Members"
          description={`Ids of ${type === 'direct' ? 'two users' : 'users'}, with commas between them. Those who are new come into being with it.`}
          placeholder="alice, bob"
          required
          autoComplete="off"
          value={members}
          set={setMembers}
          data-autofocus
        />
        {type === 'group' ? <Field label="Name" maxLength={200} value={name} set={setName} /> : null}
        {create.error ? <Failed error={create.error} /> : null}
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button type="submit" loading={create.isPending}>
            Make the conversation
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
