import { Button, Code } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { useChange, usePages } from '../api/hooks.ts';
import { useMay } from '../api/roles.ts';
import { ConfirmButton } from '../ui/confirm.tsx';
import { Secret } from '../ui/copy.tsx';
import { Field } from '../ui/field.tsx';
import { DialogForm } from '../ui/form.tsx';
import { List } from '../ui/list.tsx';
import { Page } from '../ui/page.tsx';
import { SecretDialog } from '../ui/secret-dialog.tsx';
import { Empty } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';
import { Tag } from '../ui/tag.tsx';

export default function Keys(): ReactNode {
  const input = { limit: 100 };
  const pages = usePages('keys.list', input);
  const may = useMay('keys.create');
  return (
    <Page title="Secret keys" call={['keys.list', input]} actions={may ? <CreateKey /> : null}>
      <List
        what="secret keys"
        pages={pages}
        rowKey={(key) => key.id}
        columns={[
          { title: 'Id', cell: (key) => <Code>{key.id}</Code> },
          { title: 'Name', cell: (key) => key.name },
          { title: 'Created', cell: (key) => <Time at={key.createdAt} />, wide: true },
          { title: 'Last used', cell: (key) => <Time at={key.lastUsedAt} />, wide: true },
          {
            title: 'State',
            cell: (key) =>
              key.revokedAt ? (
                <Tag tone="neutral">revoked</Tag>
              ) : may ? (
                <Revoke keyId={key.id} name={key.name} />
              ) : (
                'live'
              ),
          },
        ]}
        empty={<Empty title="No keys">Your server needs one to call the API and to sign tokens.</Empty>}
      />
    </Page>
  );
}

function CreateKey(): ReactNode {
  const [opened, setOpened] = useState(false);
  const [name, setName] = useState('');
  const [secret, setSecret] = useState<string | null>(null);
  const create = useChange('keys.create', { done: (made) => setSecret(made.secretKey) });
  const close = (): void => {
    setOpened(false);
    setSecret(null);
    setName('');
    create.reset();
  };
  return (
    <>
      <Button onClick={() => setOpened(true)}>Create a key</Button>
      <SecretDialog
        opened={opened}
        onClose={close}
        title={secret === null ? 'Create a secret key' : 'The secret key'}
        secret={secret !== null}
      >
        {secret === null ? (
          <DialogForm
            label="Create the key"
            pending={create.isPending}
            error={create.error}
            submit={() => create.mutate(name === '' ? {} : { name })}
            cancel={close}
          >
            <Field
              label="Name"
              description="For example the server that uses it"
              value={name}
              maxLength={200}
              set={setName}
              data-autofocus
            />
          </DialogForm>
        ) : (
          <Secret value={secret} />
        )}
      </SecretDialog>
    </>
  );
}

function Revoke({ keyId, name }: { keyId: string; name: string }): ReactNode {
  const revoke = useChange('keys.revoke');
  return (
    <ConfirmButton
      label="Revoke"
      title={`Revoke the key ${name === '' ? keyId : name}?`}
      pending={revoke.isPending}
      error={revoke.error}
      onConfirm={() => revoke.mutateAsync({ keyId })}
    >
      It is refused at once, and so is every user token that it signed. This cannot be undone.
    </ConfirmButton>
  );
}
