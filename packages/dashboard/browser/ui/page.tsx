import { Group, Stack, Title } from '@mantine/core';
import { useEffect } from 'react';
import type { ReactNode } from 'react';
import type { CallName } from '../api/call.ts';
import { CurlButton } from './copy.tsx';

/** The head of a screen: its name (also the window's title), the call behind it, and what can be done with the whole of it. */
export function Page(props: {
  title: string;
  /** What is copied as curl. */
  call: readonly [name: CallName, input: Record<string, unknown>];
  actions?: ReactNode;
  children: ReactNode;
}): ReactNode {
  const [name, input] = props.call;
  useEffect(() => {
    document.title = `${props.title} · Parley`;
  }, [props.title]);
  return (
    <Stack gap="md">
      <Group justify="space-between" align="center">
        <Title order={1} size="h2">
          {props.title}
        </Title>
        <Group gap="xs">
          <CurlButton name={name} input={input} />
          {props.actions}
        </Group>
      </Group>
      {props.children}
    </Stack>
  );
}

export const Section = (props: { title: string; actions?: ReactNode; children: ReactNode }): ReactNode => (
  <Stack gap="xs" component="section" aria-label={props.title}>
    <Group justify="space-between">
      <Title order={2} size="h4">
        {props.title}
      </Title>
      <Group gap="xs">{props.actions}</Group>
    </Group>
    {props.children}
  </Stack>
);
