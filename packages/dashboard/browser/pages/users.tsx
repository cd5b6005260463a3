import { Anchor, Code } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link, Route, Switch } from 'wouter';
import { useEnv, usePages } from '../api/hooks.ts';
import { FilterBar, FilterText, useFilters } from '../ui/filter.tsx';
import { List } from '../ui/list.tsx';
import { Page } from '../ui/page.tsx';
import { Empty } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';
import { UserPage } from './user.tsx';
import { Tag } from '../ui/tag.tsx';

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

function UserList(): ReactNode {
  const env = useEnv();
  const filters = useFilters(['prefix', 'namePrefix']);
  const input = { limit: 50, ...filters };
  const pages = usePages('users.list', input);
  return (
    <Page title="Users" call={['users.list', input]}>
      <FilterBar names={['prefix', 'namePrefix']}>
        <FilterText name="prefix" label="Id begins with" placeholder="alice" />
        <FilterText name="namePrefix" label="Name begins with" placeholder="Alice" />
      </FilterBar>
      <List
        what="users"
        pages={pages}
        rowKey={(user) => user.id}
        columns={[
          {
            title: 'Id',
            cell: (user) => (
              <Anchor component={Link} href={`/${env}/users/${encodeURIComponent(user.id)}`}>
                <Code>{user.id}</Code>
              </Anchor>
            ),
          },
          { title: 'Name', cell: (user) => user.name ?? '' },
          {
            title: 'State',
            cell: (user) => (user.deactivatedAt ? <Tag tone="neutral">deactivated</Tag> : 'active'),
          },
          { title: 'Created', cell: (user) => <Time at={user.createdAt} />, wide: true },
        ]}
        empty={
          Object.keys(filters).length > 0 ? (
            <Empty title="Nobody fits" />
          ) : (
            <Empty title="No users yet">
              Users come into being when your server names them, or with the first use of a valid token.
            </Empty>
          )
        }
      />
    </Page>
  );
}
