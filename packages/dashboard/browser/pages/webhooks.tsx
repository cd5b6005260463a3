import {
  Alert,
  Anchor,
  Button,
  Checkbox,
  Code,
  Group,
  Modal,
  SimpleGrid,
  Stack,
  TextInput,
} from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { Link, Route, Switch } from 'wouter';
import type { WebhookEndpointWithSecret } from '@parley/protocol';
import { useChange, useEnv, usePages } from '../api/hooks.ts';
import { useMay } from '../api/roles.ts';
import { webhookEventNames } from '../api/generated/routes.ts';
import { CurlButton, Secret } from '../ui/copy.tsx';
import { List } from '../ui/list.tsx';
import { Page } from '../ui/page.tsx';
import { Empty } from '../ui/states.tsx';
import { StatusBadge } from '../ui/status-badge.tsx';
import { Time } from '../ui/time.tsx';
import { WebhookPage } from './webhook.tsx';

export default function Webhooks(): ReactNode {
  return (
    <Switch>
      <Route path="/:env/webhooks/:webhookId">
        {({ webhookId }) => <WebhookPage webhookId={webhookId} />}
      </Route>
      <Route>
        <Endpoints />
      </Route>
    </Switch>
  );
}

function Endpoints(): ReactNode {
  const env = useEnv();
  const pages = usePages('webhooks.list', { limit: 50 });
  const may = useMay('webhooks.create');
  const [adding, setAdding] = useState(false);
  const add = may ? <Button onClick={() => setAdding(true)}>Add an endpoint</Button> : null;
  return (
    <Page
      title="Webhooks"
      actions={
        <>
          <CurlButton name="webhooks.list" input={{}} />
          {add}
        </>
      }
    >
      <List
        what="webhook endpoints"
        pages={pages}
        rowKey={(endpoint) => endpoint.id}
        columns={[
          {
            title: 'URL',
            cell: (endpoint) => (
              <Anchor
                component={Link}
                href={`/${env}/webhooks/${endpoint.id}`}
                style={{ overflowWrap: 'anywhere' }}
              >
                {endpoint.url}
              </Anchor>
            ),
          },
          { title: 'Status', cell: (endpoint) => <StatusBadge status={endpoint.status} /> },
          { title: 'Events', cell: (endpoint) => endpoint.events.length, wide: true },
          { title: 'Created', cell: (endpoint) => <Time at={endpoint.createdAt} />, wide: true },
        ]}
        empty={
          <Empty title="No endpoints yet" action={add}>
            An endpoint is told of what happens, signed, with ten attempts over three days.
          </Empty>
        }
      />
      <AddDialog opened={adding} close={() => setAdding(false)} />
    </Page>
  );
}

function AddDialog({ opened, close }: { opened: boolean; close: () => void }): ReactNode {
  const [url, setUrl] = useState('');
  const [events, setEvents] = useState<string[]>(['message.created']);
  const [made, setMade] = useState<WebhookEndpointWithSecret | null>(null);
  const create = useChange('webhooks.create', { done: setMade });
  const end = (): void => {
    close();
    setMade(null);
    setUrl('');
    create.reset();
  };
  return (
    <Modal
      opened={opened}
      onClose={end}
      title={made ? 'The endpoint’s signing secret' : 'Add an endpoint'}
      size="lg"

      closeOnClickOutside={!made}
    >
      {made ? (
        <Stack>
          <Secret value={made.secret} what="the secret" />
          <Button onClick={end}>Done</Button>
        </Stack>
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            create.mutate({ url, events: events as (typeof webhookEventNames)[number][] });
          }}
        >
          <Stack>
            <TextInput
              label="URL"
              placeholder="https://example.com/parley"
              value={url}
              onChange={(event) => setUrl(event.currentTarget.value)}
              error={create.error?.param === 'url' ? create.error.message : null}
              required
              data-autofocus
            />
            <Checkbox.Group label="Events" value={events} onChange={setEvents}>
              <SimpleGrid cols={{ base: 1, sm: 2 }} mt="xs" spacing="xs">
                {webhookEventNames.map((name) => (
                  <Checkbox key={name} value={name} label={<Code>{name}</Code>} />
                ))}
              </SimpleGrid>
            </Checkbox.Group>
            {create.error && create.error.param !== 'url' ? (
              <Alert color="red" variant="light" role="alert">
                {create.error.message}
              </Alert>
            ) : null}
            <Group justify="flex-end">
              <Button variant="default" onClick={end}>
                Cancel
              </Button>
              <Button type="submit" loading={create.isPending} disabled={events.length === 0}>
                Add
              </Button>
            </Group>
          </Stack>
        </form>
      )}
    </Modal>
  );
}
