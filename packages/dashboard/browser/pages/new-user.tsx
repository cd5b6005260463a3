import { Button, Group, Modal, Stack } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { useLocation } from 'wouter';
import { useChange, useEnv } from '../api/hooks.ts';
import { Field } from '../ui/field.tsx';
import { Failed } from '../ui/states.tsx';

export function NewUser({ opened, close }: { opened: boolean; close: () => void }): ReactNode {
  return (
    <Modal opened={opened} onClose={close} title="New user">
      <Form close={close} />
    </Modal>
  );
}

function Form({ close }: { close: () => void }): ReactNode {
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
    <form
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate({ userId, ...(name === '' ? {} : { name }) });
      }}
    >
      <Stack>
        <Field
          label="Id"
          description="As your own system calls the person. One that exists gets the name."
          placeholder="alice"
          required
          autoComplete="off"
          value={userId}
          set={setUserId}
          data-autofocus
        />
        <Field label="Name" placeholder="Alice Adler" maxLength={200} value={name} set={setName} />
        {create.error ? <Failed error={create.error} /> : null}
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button type="submit" loading={create.isPending}>
            Make the user
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
