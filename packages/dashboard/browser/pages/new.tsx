import { Group, Radio } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { useLocation } from 'wouter';
import { useChange, useEnv } from '../api/hooks.ts';
import { useMay } from '../api/roles.ts';
import { Field } from '../ui/field.tsx';
import { DialogForm, NewButton } from '../ui/form.tsx';

/** Forms that create users and conversations; they lead to the new record. */

/** Ids of users, with commas or spaces between them. */
export const idsOf = (text: string): string[] => text.split(/[\s,]+/u).filter((id) => id !== '');

export const NewUser = ({ again }: { again?: boolean }): ReactNode =>
  useMay('users.upsert') ? (
    <NewButton label="New user" again={again} form={(close) => <UserForm close={close} />} />
  ) : null;

export const NewConversation = ({ again }: { again?: boolean }): ReactNode =>
  useMay('conversations.create') ? (
    <NewButton label="New conversation" again={again} form={(close) => <ConversationForm close={close} />} />
  ) : null;

function UserForm({ close }: { close: () => void }): ReactNode {
  const env = useEnv();
  const [, navigate] = useLocation();
  const [userId, setUserId] = useState('');
  const [name, setName] = useState('');
  const create = useChange('users.upsert', {
    done: ({ id }) => {
      close();
      navigate(`/${env}/users/${encodeURIComponent(id)}`);
    },
  });
  return (
    <DialogForm
      label="Create the user"
      pending={create.isPending}
      error={create.error}
      submit={() => create.mutate({ userId, ...(name === '' ? {} : { name }) })}
      cancel={close}
    >
      <Field
        label="Id"
        description="The id of the person in your own system. An existing user gets this name."
        placeholder="alice"
        required
        autoComplete="off"
        value={userId}
        set={setUserId}
        data-autofocus
      />
      <Field label="Name" placeholder="Alice Adler" maxLength={200} value={name} set={setName} />
    </DialogForm>
  );
}

function ConversationForm({ close }: { close: () => void }): ReactNode {
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
    <DialogForm
      label="Create the conversation"
      pending={create.isPending}
      error={create.error}
      submit={() => create.mutate({ type, members: idsOf(members), ...(name === '' ? {} : { name }) })}
      cancel={close}
    >
      <Radio.Group label="Kind" value={type} onChange={(value) => setType(value as 'direct' | 'group')}>
        <Group mt={4}>
          <Radio value="direct" label="direct" />
          <Radio value="group" label="group" />
        </Group>
      </Radio.Group>
      <Field
        label="Members"
        description={`Ids of ${type === 'direct' ? 'two users' : 'users'}, separated by commas. Users that do not exist are created.`}
        placeholder="alice, bob"
        required
        autoComplete="off"
        value={members}
        set={setMembers}
        data-autofocus
      />
      {type === 'group' ? <Field label="Name" maxLength={200} value={name} set={setName} /> : null}
    </DialogForm>
  );
}
