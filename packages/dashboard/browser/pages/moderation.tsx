import { Tabs } from '@mantine/core';
import type { ReactNode } from 'react';
import { useMay } from '../api/roles.ts';
import { useFilter } from '../ui/filter.tsx';
import { Page } from '../ui/page.tsx';
import { Empty } from '../ui/states.tsx';
import { Queue } from './moderation-queue.tsx';
import { ModerationRules } from './moderation-rules.tsx';

export default function Moderation(): ReactNode {
  const [view, setView] = useFilter('view');
  const may = useMay('reports.list');
  const shown = view === 'rules' ? 'rules' : 'queue';
  return (
    <Page
      title="Moderation"
      call={shown === 'queue' ? ['reports.list', { status: 'open' }] : ['wordLists.list', {}]}
      about="Reports by users and word lists, and the decisions about them. The audit log records that you read reports."
    >
      {may ? (
        <Tabs
          value={shown}
          onChange={(value) => setView(value === 'rules' ? 'rules' : '')}
          keepMounted={false}
        >
          <Tabs.List>
            <Tabs.Tab value="queue">Queue</Tabs.Tab>
            <Tabs.Tab value="rules">Word lists and rules</Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="queue" pt="md">
            <Queue />
          </Tabs.Panel>
          <Tabs.Panel value="rules" pt="md">
            <ModerationRules />
          </Tabs.Panel>
        </Tabs>
      ) : (
        <Empty title="Reports are for developers">
          Reports show messages of users. An owner or admin of the organization can give you the role
          developer.
        </Empty>
      )}
    </Page>
  );
}
