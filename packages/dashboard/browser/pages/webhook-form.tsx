import { Button, Checkbox, Code, Modal, SimpleGrid } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { WebhookEndpoint, WebhookEndpointWithSecret } from '@parley/protocol';
import type { ApiFailure } from '../api/call.ts';
import { webhookEventNames } from '../api/generated/routes.ts';
import { useChange } from '../api/hooks.ts';
import { Secret } from '../ui/copy.tsx';
import { Field } from '../ui/field.tsx';
import { DialogForm } from '../ui/form.tsx';
import { SecretDialog } from '../ui/secret-dialog.tsx';

interface Given {
  url: string;
  events: (typeof webhookEventNames)[number][];
  description: string | null;
}

/** The fields of an endpoint: URL, events and description. */
function EndpointForm(props: {
  begin: Pick<WebhookEndpoint, 'url' | 'events' | 'description'>;
  label: string;
  pending: boolean;
  error: ApiFailure | null;
  submit: (given: Given) => void;
  cancel: () => void;
}): ReactNode {
  const { begin, error } = props;
  const [url, setUrl] = useState(begin.url);
  const [events, setEvents] = useState<string[]>(begin.events);
  const [description, setDescription] = useState(begin.description ?? '');
  return (
    <DialogForm
      label={props.label}
      pending={props.pending}
      error={error?.param === 'url' ? null : error}
      submit={() =>
        props.submit({
          url,
          events: events as Given['events'],
          description: description === '' ? null : description,
        })
      }
      cancel={props.cancel}
      disabled={events.length === 0}
    >
      <Field
        label="URL"
        placeholder="https://example.com/parley"
        value={url}
        set={setUrl}
        error={error?.param === 'url' ? error.message : null}
        required
        data-autofocus
      />
      <Field label="Description" value={description} set={setDescription} maxLength={500} />
      <Checkbox.Group label="Events" value={events} onChange={setEvents}>
        <SimpleGrid cols={{ base: 1, sm: 2 }} mt="xs" spacing="xs">
          {webhookEventNames.map((name) => (
            <Checkbox key={name} value={name} label={<Code>{name}</Code>} />
          ))}
        </SimpleGrid>
      </Checkbox.Group>
    </DialogForm>
  );
}

export function AddEndpoint({ opened, close }: { opened: boolean; close: () => void }): ReactNode {
  const [made, setMade] = useState<WebhookEndpointWithSecret | null>(null);
  const create = useChange('webhooks.create', { done: setMade });
  const end = (): void => {
    close();
    setMade(null);
    create.reset();
  };
  return (
    <SecretDialog
      opened={opened}
      onClose={end}
      title={made ? 'The endpoint’s signing secret' : 'Add an endpoint'}
      secret={made !== null}
    >
      {made ? (
        <Secret value={made.secret} />
      ) : (
        <EndpointForm
          begin={{ url: '', events: ['message.created'], description: null }}
          label="Add the endpoint"
          pending={create.isPending}
          error={create.error}
          submit={(given) => create.mutate(given)}
          cancel={end}
        />
      )}
    </SecretDialog>
  );
}

export function EditEndpoint({ endpoint }: { endpoint: WebhookEndpoint }): ReactNode {
  const [opened, setOpened] = useState(false);
  const update = useChange('webhooks.update', { done: () => setOpened(false) });
  const close = (): void => {
    setOpened(false);
    update.reset();
  };
  return (
    <>
      <Button variant="default" onClick={() => setOpened(true)}>
        Edit
      </Button>
      <Modal opened={opened} onClose={close} title="Edit the endpoint" size="lg">
        <EndpointForm
          begin={endpoint}
          label="Save"
          pending={update.isPending}
          error={update.error}
          submit={(given) => update.mutate({ webhookId: endpoint.id, ...given })}
          cancel={close}
        />
      </Modal>
    </>
  );
}
