import { Anchor, Button } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { Link, Route, Switch } from 'wouter';
import { useEnv, usePages } from '../api/hooks.ts';
import { useMay } from '../api/roles.ts';
import { List } from '../ui/list.tsx';
import { Page } from '../ui/page.tsx';
import { Empty } from '../ui/states.tsx';
import { StatusBadge } from '../ui/status-badge.tsx';
import { Time } from '../ui/time.tsx';
import { BeforeSendHook } from './hook.tsx';
import { AddEndpoint } from './webhook-form.tsx';
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
  const add = (again: boolean): ReactNode =>
    may ? (
      <Button {...(again ? { variant: 'default' } : {})} onClick={() => setAdding(true)}>
        Add an endpoint
      </Button>
    ) : null;
  return (
    <Page title="Webhooks" call={['webhooks.list', {}]} actions={add(false)}>
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
          <Empty title="No webhooks yet" action={add(true)}>
            An endpoint gets every event that you choose, signed, with ten attempts over three days.
          </Empty>
        }
      />
      <BeforeSendHook />
      <AddEndpoint opened={adding} close={() => setAdding(false)} />
    </Page>
  );
}
