import { Button, Code, CopyButton, Group, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { asCurl } from '../api/call.ts';
import type { CallName } from '../api/call.ts';
import { useEnv } from '../api/hooks.ts';

export const Copy = ({ value, label = 'Copy' }: { value: string; label?: string }): ReactNode => (
  <CopyButton value={value} timeout={2_000}>
    {({ copied, copy }) => (
      <Button size="compact-xs" variant="default" onClick={copy} aria-live="polite">
        {copied ? 'Copied' : label}
      </Button>
    )}
  </CopyButton>
);

/** An id with a way to copy it. */
export const Id = ({ id }: { id: string }): ReactNode => (
  <Group gap={6} display="inline-flex" maw="100%">
    <Code style={{ overflowWrap: 'anywhere' }}>{id}</Code>
    <Copy value={id} />
  </Group>
);

/** The call behind a screen, for a terminal. */
export const CurlButton = ({
  name,
  input,
}: {
  name: CallName;
  input: Record<string, unknown>;
}): ReactNode => <Copy value={asCurl(name, input, useEnv())} label="Copy as curl" />;

/** Fields that customers gave, as JSON. */
export const Json = ({ value, label }: { value: unknown; label: string }): ReactNode => (
  <Code block tabIndex={0} aria-label={label}>
    {JSON.stringify(value, null, 2)}
  </Code>
);

export const Snippet = ({ code, label }: { code: string; label: string }): ReactNode => (
  <Stack gap={4}>
    <Group justify="space-between">
      <Text size="sm" fw={600}>
        {label}
      </Text>
      <Copy value={code} />
    </Group>
    <Code block tabIndex={0} aria-label={label}>
      {code}
    </Code>
  </Stack>
);

/** A secret that is shown this one time. */
export const Secret = ({ value, what }: { value: string; what: string }): ReactNode => (
  <Stack gap="xs">
    <Text>This is shown once. Keep {what} where your server finds it, not in its code.</Text>
    <Group gap="xs" align="center">
      <Code
        block
        aria-label="Shown once"
        style={{ flex: 1, overflowWrap: 'anywhere', whiteSpace: 'pre-wrap' }}
        tabIndex={0}
      >
        {value}
      </Code>
      <Copy value={value} />
    </Group>
  </Stack>
);
