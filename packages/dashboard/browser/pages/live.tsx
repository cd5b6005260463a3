import { Anchor, Code } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useEnv, usePages, useRows } from '../api/hooks.ts';
import { FilterBar, FilterText, useFilters } from '../ui/filter.tsx';
import { List } from '../ui/list.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Empty } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';

const everyMs = 3_000;

export default function Live(): ReactNode {
  const env = useEnv();
  const filters = useFilters(['userId', 'node']);
  const nodes = useRows('live.nodes', {}, { everyMs });
  const input = { limit: 50, ...filters };
  const sockets = usePages('live.sockets', input, { everyMs });
  return (
    <Page title="Live" call={['live.sockets', input]}>
      <Section title="Nodes">
        <List
          what="nodes"
          pages={nodes}
          rowKey={(node) => node.id}
          columns={[
            {
              title: 'Node',
              cell: (node) => (
                <Anchor component={Link} href={`/${env}/live?node=${encodeURIComponent(node.id)}`}>
                  <Code>{node.id}</Code>
                </Anchor>
              ),
            },
            { title: 'Sockets here', cell: (node) => node.sockets },
            { title: 'Host', cell: (node) => node.host, wide: true },
            { title: 'Does', cell: (node) => node.roles.join(', '), wide: true },
            { title: 'Version', cell: (node) => node.version, wide: true },
            { title: 'Started', cell: (node) => <Time at={node.startedAt} /> },
          ]}
          empty={<Empty title="No node has reported yet" />}
        />
      </Section>
      <Section title="Open sockets">
        <FilterBar names={['userId', 'node']}>
          <FilterText name="userId" label="User" placeholder="alice" />
          <FilterText name="node" label="Node" />
        </FilterBar>
        <List
          what="open sockets"
          pages={sockets}
          rowKey={(socket) => socket.id}
          columns={[
            {
              title: 'User',
              cell: (socket) => (
                <Anchor component={Link} href={`/${env}/users/${encodeURIComponent(socket.userId)}`}>
                  <Code>{socket.userId}</Code>
                </Anchor>
              ),
            },
            { title: 'Open since', cell: (socket) => <Time at={socket.openedAt} /> },
            { title: 'Client', cell: (socket) => socket.sdk ?? '', wide: true },
            { title: 'Address', cell: (socket) => socket.address ?? '', wide: true },
            { title: 'Node', cell: (socket) => <Code>{socket.node}</Code>, wide: true },
            { title: 'Session', cell: (socket) => <Code>{socket.id}</Code>, wide: true },
          ]}
          empty={<Empty title="Nobody is connected">Sockets appear here as they open.</Empty>}
        />
      </Section>
    </Page>
  );
}
