import { Anchor, Button, Group, Stack, Tabs, Text, Title } from '@mantine/core';
import BookIcon from 'lucide-react/icons/book-open';
import CheckIcon from 'lucide-react/icons/check';
import PlayIcon from 'lucide-react/icons/play';
import WebhookIcon from 'lucide-react/icons/webhook';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { rememberedKey, rememberKey } from '../api/first-key.ts';
import { useCall, useChange, useEnv } from '../api/hooks.ts';
import { useNames } from '../api/names.ts';
import { useEnvironment, useMay } from '../api/roles.ts';
import { Secret, Snippet } from '../ui/copy.tsx';
import { Icon } from '../ui/icon.tsx';
import { Person } from '../ui/people.tsx';
import { Failed } from '../ui/states.tsx';
import { firstMessage } from './first-message.ts';

/** Leads a fresh environment to its first message: three steps that tick themselves when the service sees them happen. */
export function QuickStart({ arrived }: { arrived: boolean }): ReactNode {
  const env = useEnvironment();
  const [made, setMade] = useState<string | null>(null);
  if (!env) return null;
  const secretKey = made ?? rememberedKey(env.id);
  return (
    <section aria-label="Your first message">
      <Title order={2} size="h3">
        Send your first message
      </Title>
      <Text c="dimmed" mb="lg">
        Three steps, about two minutes. This page follows your progress.
      </Text>
      <div className="two">
        <div>
          <Step no={1} state="done" title="Your environment is ready">
            <Key env={env.id} made={made} known={secretKey !== null} setMade={setMade} />
          </Step>
          <Step no={2} state={arrived ? 'done' : 'now'} title="Send a message from your server">
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
          </Step>
          <Step no={3} state={arrived ? 'done' : 'later'} title="See it arrive">
            {arrived ? (
              <Arrived />
            ) : (
              <Group gap="sm" role="status">
                <span className="typing" aria-hidden>
                  <i />
                  <i />
                  <i />
                </span>
                Waiting for your first message. It appears here by itself.
              </Group>
            )}
          </Step>
        </div>
        <Meanwhile playground={env.kind === 'development'} env={env.id} />
      </div>
    </section>
  );
}

const Step = (props: {
  no: number;
  state: 'done' | 'now' | 'later';
  title: string;
  children: ReactNode;
}): ReactNode => (
  <div className="step" data-state={props.state}>
    <span className="step-no">{props.state === 'done' ? <Icon of={CheckIcon} /> : props.no}</span>
    <div>
      <Title order={3} size="h4" mb={4}>
        {props.title}
        {props.state === 'done' ? <span className="sr"> (done)</span> : null}
      </Title>
      {props.children}
    </div>
  </div>
);

/** The first start made a key; a user who did not save it needs another one. */
function Key(props: {
  env: string;
  made: string | null;
  known: boolean;
  setMade: (secretKey: string) => void;
}): ReactNode {
  const may = useMay('keys.create');
  const live = useCall('keys.list', { limit: 20 }).data?.data.filter((key) => key.revokedAt === null) ?? [];
  const create = useChange('keys.create', {
    done: ({ secretKey }) => {
      rememberKey(props.env, secretKey);
      props.setMade(secretKey);
    },
  });
  if (props.made !== null) return <Secret value={props.made} />;
  if (props.known) return <Text c="dimmed">The code below contains the key that you have just seen.</Text>;
  return (
    <Stack gap="xs" align="flex-start">
      <Text c="dimmed">
        {live.length === 0
          ? 'Your server needs a secret key.'
          : `The key ${live[0]!.id} is there; its secret was shown when it was created. Put it in place of sk_live_…, or create another key.`}
      </Text>
      {may ? (
        <Button
          size="compact-sm"
          variant={live.length === 0 ? 'filled' : 'default'}
          loading={create.isPending}
          onClick={() => create.mutate({ name: 'quick start' })}
        >
          Create a key and fill it in
        </Button>
      ) : null}
      {create.error ? <Failed error={create.error} /> : null}
    </Stack>
  );
}

/** The newest conversation, with its last message for users who may read messages. */
function Arrived(): ReactNode {
  const env = useEnv();
  const conversation = useCall('explorer.conversations', { limit: 1 }).data?.data[0];
  const conversationId = conversation?.id ?? '';
  const enabled = useMay('messages.list') && conversation !== undefined;
  const message = useCall('messages.list', { conversationId, limit: 1 }, { enabled }).data?.data[0];
  const nameOf = useNames([message?.senderId ?? null]);
  return (
    <Stack gap="xs" role="status">
      <Text fw={600}>Your message has arrived</Text>
      {message?.senderId ? <Person id={message.senderId} name={nameOf(message.senderId)} /> : null}
      {message?.text ? (
        <div className="bubble" dir="auto">
          {message.text}
        </div>
      ) : null}
      <Group gap="md">
        {conversation ? (
          <Anchor component={Link} href={`/${env}/conversations/${conversation.id}?view=messages`}>
            See the conversation
          </Anchor>
        ) : null}
        {message ? (
          <Anchor component={Link} href={`/${env}/delivery?messageId=${message.id}`}>
            Did it arrive?
          </Anchor>
        ) : null}
      </Group>
    </Stack>
  );
}

const Meanwhile = ({ playground, env }: { playground: boolean; env: string }): ReactNode => (
  <Stack gap="sm" component="aside" aria-label="Meanwhile">
    <Title order={3} size="h4">
      Meanwhile
    </Title>
    {playground ? (
      <Anchor href="/" className="person">
        <Icon of={PlayIcon} /> Try it in the demo
      </Anchor>
    ) : null}
    <Anchor href="/docs" className="person">
      <Icon of={BookIcon} /> Read the reference
    </Anchor>
    <Anchor component={Link} href={`/${env}/webhooks`} className="person">
      <Icon of={WebhookIcon} /> Send events to your server with a webhook
    </Anchor>
  </Stack>
);
