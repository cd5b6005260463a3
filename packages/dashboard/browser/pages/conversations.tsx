import { Alert } from '@mantine/core';
import type { ReactNode } from 'react';
import { Redirect, Route, Switch } from 'wouter';
import { useEnv } from '../api/hooks.ts';
import { FilterText, useFilter } from '../ui/filter.tsx';
import { Page } from '../ui/page.tsx';
import { ConversationPage } from './conversation.tsx';

export default function Conversations(): ReactNode {
  return (
    <Switch>
      <Route path="/:env/conversations/:conversationId">
        {({ conversationId }) => <ConversationPage conversationId={conversationId} />}
      </Route>
      <Route>
        <Find />
      </Route>
    </Switch>
  );
}

/** Conversations are found by their id, or through one of their members. */
function Find(): ReactNode {
  const env = useEnv();
  const [id] = useFilter('id');
  const [user] = useFilter('user');
  if (id !== '') return <Redirect to={`/${env}/conversations/${encodeURIComponent(id)}`} />;
  if (user !== '') return <Redirect to={`/${env}/users/${encodeURIComponent(user)}`} />;
  return (
    <Page title="Conversations" call={['conversations.list', { userId: 'alice' }]}>
      <FilterText name="id" label="Conversation id" placeholder="conv_…" />
      <FilterText name="user" label="Conversations of the user" placeholder="alice" />
      <Alert color="gray" variant="light">
        Reading messages here is noted in the audit, once per conversation and hour.
      </Alert>
    </Page>
  );
}
