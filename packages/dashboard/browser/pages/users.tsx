import { Anchor, Code } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link, Route, Switch } from 'wouter';
import { useEnv, usePages } from '../api/hooks.ts';
import { FilterBar, FilterText, useFilters } from '../ui/filter.tsx';
import { List } from '../ui/list.tsx';
import { Page } from '../ui/page.tsx';
import { Person } from '../ui/people.tsx';
import { Empty } from '../ui/states.tsx';
import { Tag } from '../ui/tag.tsx';
import { Time } from '../ui/time.tsx';
import { NewUser } from './new.tsx';
import { UserPage } from './user.tsx';

export default function Users(): ReactNode {
  return (
    <Switch>
      <Route path="/:env/users/:userId">
        {({ userId }) => <UserPage userId={decodeURIComponent(userId)} />}
      </Route>
      <Route>
        <UserList />
      </Route>
    </Switch>
  );
}

const filters = ['namePrefix', 'prefix'] as const;

function UserList(): ReactNode {
  const env = useEnv();
  const given = useFilters(filters);
  const input = { limit: 50, ...given };
  const pages = usePages('users.list', input);
  return (
    <Page title="Users" call={['users.list', input]} actions={<NewUser />}>
      <FilterBar names={filters}>
        <FilterText name="namePrefix" label="Name begins with" placeholder="Alice" />
        <FilterText name="prefix" label="Id begins with" placeholder="alice" />
      </FilterBar>
      <List
        what="users"
        pages={pages}
        rowKey={(user) => user.id}
        columns={[
          {
            title: 'User',
            cell: (user) => (
              <Anchor component={Link} href={`/${env}/users/${encodeURIComponent(user.id)}`}>
                <Person id={user.id} name={user.name} />
              </Anchor>
            ),
          },
          { title: 'Id', cell: (user) => <Code>{user.id}</Code> },
          {
            title: 'State',
            cell: (user) => (user.deactivatedAt ? <Tag>deactivated</Tag> : <Tag tone="ok">active</Tag>),
          },
          { title: 'Created', cell: (user) => <Time at={user.createdAt} />, wide: true },
        ]}
        empty={
          Object.keys(given).length > 0 ? (
            <Empty title="No user matches" />
          ) : (
            <Empty title="No users yet" action={<NewUser again />}>
              Your server creates users. The first use of a token also creates its user.
            </Empty>
          )
        }
      />
    </Page>
  );
}
