import { Anchor, Group } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link, Route, Switch } from 'wouter';
import type { ExplorerConversation } from '@parley/protocol';
import { useEnv, usePages } from '../api/hooks.ts';
import { FilterBar, FilterChoice, FilterText, useFilters } from '../ui/filter.tsx';
import { List } from '../ui/list.tsx';
import { Page } from '../ui/page.tsx';
import { Avatar, namesOf } from '../ui/people.tsx';
import { Empty } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';
import { ConversationPage } from './conversation.tsx';
import { NewConversation } from './new.tsx';

export default function Conversations(): ReactNode {
  return (
    <Switch>
      <Route path="/:env/conversations/:conversationId">
        {({ conversationId }) => <ConversationPage conversationId={conversationId} />}
      </Route>
      <Route>
        <Browse />
      </Route>
    </Switch>
  );
}

const filters = ['query', 'type', 'userId'] as const;

/** All conversations, by the people in them. */
function Browse(): ReactNode {
  const { type, ...texts } = useFilters(filters);
  const input = { limit: 50, ...texts, ...(type === undefined ? {} : { type: type as 'direct' | 'group' }) };
  const pages = usePages('explorer.conversations', input, { everyMs: 5_000 });
  const filtered = type !== undefined || Object.keys(texts).length > 0;
  return (
    <Page title="Conversations" call={['explorer.conversations', input]} actions={<NewConversation />}>
      <FilterBar names={filters}>
        <FilterText name="query" label="Name, member or id" placeholder="Alice" />
        <FilterText name="userId" label="With the user" placeholder="alice" />
        <FilterChoice
          name="type"
          label="Kind"
          options={[
            ['', 'all'],
            ['direct', 'direct'],
            ['group', 'groups'],
          ]}
        />
      </FilterBar>
      <List
        what="conversations"
        pages={pages}
        rowKey={(item) => item.id}
        columns={[
          { title: 'Conversation', cell: (item) => <Titled conversation={item} /> },
          { title: 'Kind', cell: (item) => (item.type === 'direct' ? 'direct' : 'group'), wide: true },
          { title: 'Members', cell: (item) => item.memberCount },
          { title: 'Last activity', cell: (item) => <Time at={item.lastActivityAt} /> },
          { title: 'Created', cell: (item) => <Time at={item.createdAt} />, wide: true },
        ]}
        empty={
          filtered ? (
            <Empty title="No conversation matches">
              The search compares the beginnings of names in the newest 5,000 conversations.
            </Empty>
          ) : (
            <Empty title="No conversations yet" action={<NewConversation again />}>
              Your server or a client creates conversations. You can create one here, too.
            </Empty>
          )
        }
      />
    </Page>
  );
}

const Titled = ({ conversation }: { conversation: ExplorerConversation }): ReactNode => {
  const { id, name, people, memberCount } = conversation;
  return (
    <Group gap="sm" wrap="nowrap">
      <span className="avatars">
        {people.slice(0, 2).map((person) => (
          <Avatar key={person.id} id={person.id} name={person.name ?? person.id} small />
        ))}
      </span>
      <Anchor component={Link} href={`/${useEnv()}/conversations/${id}`} dir="auto">
        {name ??
          (people.length === 0
            ? id
            : namesOf(
                people.map((person) => person.name ?? person.id),
                memberCount,
              ))}
      </Anchor>
    </Group>
  );
};
