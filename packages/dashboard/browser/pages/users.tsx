import { Anchor, Button, Code } from '@mantine/core';
import PlusIcon from 'lucide-react/icons/plus';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { Link, Route, Switch } from 'wouter';
import { useEnv, usePages } from '../api/hooks.ts';
import { useMay } from '../api/roles.ts';
import { FilterBar, FilterText, useFilters } from '../ui/filter.tsx';
import { Icon } from '../ui/icon.tsx';
import { List } from '../ui/list.tsx';
import { Page } from '../ui/page.tsx';
import { Person } from '../ui/people.tsx';
import { Empty } from '../ui/states.tsx';
import { Tag } from '../ui/tag.tsx';
import { Time } from '../ui/time.tsx';
import { NewUser } from './new-user.tsx';
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
  const may = useMay('users.upsert');
  const [making, setMaking] = useState(false);
  const make = may ? (
    <Button leftSection={<Icon of={PlusIcon} />} onClick={() => setMaking(true)}>
      New user
    </Button>
  ) : null;
  return (
    <Page title="Users" call={['users.list', input]} actions={make}>
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
          { title: 'Made', cell: (user) => <Time at={user.createdAt} />, wide: true },
        ]}
        empty={
          Object.keys(given).length > 0 ? (
            <Empty title="Nobody fits" />
          ) : (
            <Empty title="No users yet" action={make}>
              Users come into being when your server names them, or with the first use of a valid token.
            </Empty>
          )
        }
      />
      <NewUser opened={making} close={() => setMaking(false)} />
    </Page>
  );
}
