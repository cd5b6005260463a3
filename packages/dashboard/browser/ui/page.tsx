import { Group, Stack, Text, Title } from '@mantine/core';
import { useEffect } from 'react';
import type { ReactNode } from 'react';
import type { CallName } from '../api/call.ts';
import { InBar } from './bar.tsx';
import { CurlButton } from './copy.tsx';

/** The head of a screen: its name (also the window's title), the call behind it, and what can be done with the whole of it. */
export function Page(props: {
  title: string;
  /** What is copied as curl. */
  call: readonly [name: CallName, input: Record<string, unknown>];
  actions?: ReactNode;
  /** One quiet line below the name. */
  about?: ReactNode;
  /** The name is a fact of the machine, such as an address. */
  mono?: boolean;
  children: ReactNode;
}): ReactNode {
  const [name, input] = props.call;
  useEffect(() => {
    document.title = `${props.title} · Parley`;
  }, [props.title]);
  return (
    <Stack gap="lg">
      <InBar>
        <CurlButton name={name} input={input} />
      </InBar>
      <Group justify="space-between" align="flex-start" gap="sm">
        <div className="page-head">
          <Title order={1} size="h2" dir="auto" className={props.mono ? 'mono' : undefined}>
            {props.title}
          </Title>
          {props.about === undefined ? null : (
            <Text c="dimmed" component="div" mt={4}>
              {props.about}
            </Text>
          )}
        </div>
        {props.actions ? <Group gap="xs">{props.actions}</Group> : null}
      </Group>
      {props.children}
    </Stack>
  );
}

export const Section = (props: { title: string; actions?: ReactNode; children: ReactNode }): ReactNode => (
  <Stack gap="sm" component="section" aria-label={props.title}>
    <Group justify="space-between">
      <Title order={2} size="h4">
        {props.title}
      </Title>
      <Group gap="xs">{props.actions}</Group>
    </Group>
    {props.children}
  </Stack>
);
