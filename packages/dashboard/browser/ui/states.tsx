import { Alert, Anchor, Button, Center, Code, Group, Loader, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { ApiFailure } from '../api/call.ts';
import { useEnv } from '../api/hooks.ts';
import { Missing } from './mark.tsx';

/** What every screen shows while it waits, when there is nothing, and when something went wrong. */

export const Loading = ({ what }: { what: string }): ReactNode => (
  <Center mih={120} role="status" aria-live="polite">
    <Group gap="sm">
      <Loader size="sm" aria-hidden />
      <Text c="dimmed">Loading {what} …</Text>
    </Group>
  </Center>
);

export const Empty = ({
  title,
  children,
  action,
}: {
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}): ReactNode => (
  <Center mih={280}>
    <Stack align="center" gap="xs" maw={460}>
      <Missing />
      <Title order={3} size="h3" ta="center" mt="xs">
        {title}
      </Title>
      {children ? (
        <Text c="dimmed" ta="center">
          {children}
        </Text>
      ) : null}
      {action}
    </Stack>
  </Center>
);

export const Failed = ({ error, retry }: { error: ApiFailure; retry?: () => void }): ReactNode => (
  <Alert color="red" variant="light" role="alert" title={error.message}>
    <Group gap="md">
      {error.requestId ? (
        <Text size="sm">
          Request <RequestId id={error.requestId} />
        </Text>
      ) : null}
      {retry ? (
        <Button size="compact-sm" variant="default" onClick={retry}>
          Try again
        </Button>
      ) : null}
    </Group>
  </Alert>
);

/** A link to the request in the log. */
export function RequestId({ id }: { id: string }): ReactNode {
  const env = useEnv();
  const shown = <Code style={{ overflowWrap: 'anywhere' }}>{id}</Code>;
  return env === null ? (
    shown
  ) : (
    <Anchor component={Link} href={`/${env}/logs?requestId=${encodeURIComponent(id)}`}>
      {shown}
    </Anchor>
  );
}
