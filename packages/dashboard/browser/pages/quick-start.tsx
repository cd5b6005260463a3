import { Alert, Anchor, Button, Group, List, Stack, Tabs } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useCall, useChange, useEnv } from '../api/hooks.ts';
import { useEnvironment, useMay } from '../api/roles.ts';
import { Secret, Snippet } from '../ui/copy.tsx';
import { Section } from '../ui/page.tsx';
import { Failed } from '../ui/states.tsx';
import { firstMessage } from './first-message.ts';

/** Leads a fresh environment to its first message: a key, code with everything filled in, and a look at what arrives. */
export function QuickStart({ arrived }: { arrived: boolean }): ReactNode {
  const env = useEnvironment();
  const may = useMay('keys.create');
  const [secretKey, setSecretKey] = useState<string | null>(null);
  const create = useChange('keys.create', { done: (made) => setSecretKey(made.secretKey) });
  if (!env) return null;
  return (
    <Section title="Your first message">
      <List
        type="ordered"
        spacing="md"
        styles={{ itemWrapper: { display: 'block' }, itemLabel: { display: 'block' } }}
      >
        <List.Item>
          <Stack gap="xs">
            {secretKey === null ? (
              <Group gap="sm">
                Your server needs a secret key.
                {may ? (
                  <Button
                    size="compact-sm"
                    loading={create.isPending}
                    onClick={() => create.mutate({ name: 'quick start' })}
                  >
                    Create one
                  </Button>
                ) : null}
              </Group>
            ) : (
              <Secret value={secretKey} />
            )}
            {create.error ? <Failed error={create.error} /> : null}
          </Stack>
        </List.Item>
        <List.Item>
          <Stack gap="xs">
            Run one of these.
            <Tabs defaultValue="curl">
              <Tabs.List>
                {Object.keys(firstMessage).map((name) => (
                  <Tabs.Tab key={name} value={name}>
                    {name}
                  </Tabs.Tab>
                ))}
              </Tabs.List>
              {Object.entries(firstMessage).map(([name, code]) => (
                <Tabs.Panel key={name} value={name} pt="sm">
                  <Snippet
                    label={`With ${name}`}
                    code={code({ url: location.origin, env: env.id, secretKey: secretKey ?? 'sk_live_…' })}
                  />
                </Tabs.Panel>
              ))}
            </Tabs>
          </Stack>
        </List.Item>
        <List.Item>
          {arrived ? (
            <Arrived />
          ) : (
            <span role="status">Waiting for your first message: it shows up here by itself.</span>
          )}
        </List.Item>
      </List>
      <Group gap="md">
        <Anchor href="/docs">All operations</Anchor>
        {env.kind === 'development' ? <Anchor href="/">Try it in the playground</Anchor> : null}
      </Group>
    </Section>
  );
}

/** A user who is in a conversation, and that conversation. */
function Arrived(): ReactNode {
  const env = useEnv();
  const users = useCall('users.list', { limit: 1 });
  const userId = users.data?.data[0]?.id;
  const enabled = userId !== undefined;
  const conversations = useCall('conversations.list', { userId: userId ?? '', limit: 1 }, { enabled });
  const conversation = conversations.data?.data[0];
  return (
    <Alert color="teal" variant="light" role="status" title="It is here">
      <Group gap="md">
        {conversation ? (
          <Anchor component={Link} href={`/${env}/conversations/${conversation.id}?view=messages`}>
            See the conversation
          </Anchor>
        ) : null}
        <Anchor component={Link} href={`/${env}/webhooks`}>
          Next: let your server know, with a webhook
        </Anchor>
      </Group>
    </Alert>
  );
}
