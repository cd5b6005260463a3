import { Anchor, Group, Text } from '@mantine/core';
import ServerIcon from 'lucide-react/icons/server';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { LiveNode } from '@parley/protocol';
import { useEnv, usePages, useRows } from '../api/hooks.ts';
import { useNames } from '../api/names.ts';
import { browserName } from '../ui/agent.ts';
import { Pairs } from '../ui/facts.tsx';
import { FilterBar, FilterText, useFilters } from '../ui/filter.tsx';
import { Icon } from '../ui/icon.tsx';
import { List } from '../ui/list.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Person } from '../ui/people.tsx';
import { Empty, Failed, Loading } from '../ui/states.tsx';
import { Tag } from '../ui/tag.tsx';
import { Time } from '../ui/time.tsx';

const everyMs = 3_000;

export default function Live(): ReactNode {
  const env = useEnv();
  const filters = useFilters(['userId', 'node']);
  const nodes = useRows('live.nodes', {}, { everyMs });
  const input = { limit: 50, ...filters };
  const sockets = usePages('live.sockets', input, { everyMs });
  const nameOf = useNames(sockets.items?.map(({ userId }) => userId) ?? []);
  return (
    <Page title={titleOf(nodes.items)} about="Refreshed every three seconds." call={['live.sockets', input]}>
      <Section title="Nodes">
        {nodes.items ? (
          <Nodes of={nodes.items} chosen={filters.node} />
        ) : nodes.error ? (
          <Failed error={nodes.error} retry={nodes.refresh} />
        ) : (
          <Loading what="nodes" />
        )}
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
              cell: ({ userId }) => (
                <Anchor component={Link} href={`/${env}/users/${encodeURIComponent(userId)}`}>
                  <Person id={userId} name={nameOf(userId)} />
                </Anchor>
              ),
            },
            { title: 'Open since', cell: (socket) => <Time at={socket.openedAt} /> },
            {
              title: 'Client',
              cell: ({ sdk }) => (sdk === null ? '' : <span title={sdk}>{browserName(sdk)}</span>),
              wide: true,
            },
            {
              title: 'Address',
              cell: (socket) => <span className="mono">{socket.address ?? ''}</span>,
              wide: true,
            },
            { title: 'Node', cell: (socket) => <span className="mono">{socket.node}</span>, wide: true },
            {
              title: 'Session',
              cell: (socket) => <span className="mono wrap">{socket.id}</span>,
              wide: true,
            },
          ]}
          empty={<Empty title="No open sockets">Sockets appear here as they open.</Empty>}
        />
      </Section>
    </Page>
  );
}

const counted = (count: number, one: string): string => `${count} ${count === 1 ? one : `${one}s`}`;

function titleOf(nodes: LiveNode[] | undefined): string {
  if (nodes === undefined) return 'Live';
  const sockets = nodes.reduce((sum, node) => sum + node.sockets, 0);
  return sockets === 0
    ? 'No users are connected'
    : `${counted(sockets, 'socket')} on ${counted(nodes.length, 'node')}`;
}

function Nodes({ of, chosen }: { of: LiveNode[]; chosen: string | undefined }): ReactNode {
  const env = useEnv();
  if (of.length === 0) return <Empty title="No node has reported yet" />;
  return (
    <div className="boxes">
      {of.map((node) => (
        <div key={node.id} className="box">
          <Group gap="sm" mb="xs" wrap="nowrap">
            <Icon of={ServerIcon} size={18} />
            <Anchor
              component={Link}
              href={`/${env}/live?node=${encodeURIComponent(node.id)}`}
              className="mono wrap"
              flex={1}
            >
              {node.id}
            </Anchor>
            {chosen === node.id ? <Tag tone="ok">shown below</Tag> : null}
          </Group>
          <Pairs
            of={[
              ['Sockets here', node.sockets],
              ['Host', node.host],
              ['Roles', node.roles.join(', ')],
              ['Version', node.version],
              ['Started', <Time at={node.startedAt} />],
            ]}
          />
        </div>
      ))}
      {of.length > 1 ? null : (
        <Text c="dimmed" size="sm" p="sm">
          One process does all the work. More processes can share it over Redis.
        </Text>
      )}
    </div>
  );
}
