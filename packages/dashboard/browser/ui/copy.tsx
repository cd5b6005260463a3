import { Button, Code, Group, Stack, Text } from '@mantine/core';
import CheckIcon from 'lucide-react/icons/check';
import CopyIcon from 'lucide-react/icons/copy';
import TerminalIcon from 'lucide-react/icons/terminal';
import type { LucideIcon } from 'lucide-react/types';
import { useEffect, useState } from 'react';
import type { ReactNode } from 'react';
import { asCurl } from '../api/call.ts';
import type { CallName } from '../api/address.ts';
import { useEnv } from '../api/hooks.ts';
import { Icon } from './icon.tsx';

/** Into the clipboard; where the browser has none for us, as over http, by way of a selection. */
async function intoClipboard(value: string): Promise<void> {
  const { clipboard } = navigator as { clipboard?: Clipboard };
  if (clipboard) return clipboard.writeText(value);
  const area = document.createElement('textarea');
  area.value = value;
  // Within a dialog, which keeps the focus to itself.
  (document.querySelector('[role=dialog]') ?? document.body).append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

const copiedMs = 2_000;

export function Copy(props: {
  value: string;
  label?: string;
  icon?: LucideIcon;
  /** What stands in a row of others. */
  quiet?: boolean;
}): ReactNode {
  const { value, label = 'Copy', icon = CopyIcon } = props;
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), copiedMs);
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <Button
      size={props.quiet ? 'compact-sm' : 'compact-xs'}
      variant={props.quiet ? 'subtle' : 'default'}
      color={props.quiet ? 'gray' : undefined}
      className={props.quiet ? 'quiet' : undefined}
      aria-label={label}
      onClick={() =>
        void intoClipboard(value).then(
          () => setCopied(true),
          () => undefined,
        )
      }
      aria-live="polite"
    >
      <Icon of={copied ? CheckIcon : icon} size={14} />
      <span className="label">{copied ? 'Copied' : label}</span>
    </Button>
  );
}

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
}): ReactNode => (
  <Copy value={asCurl(name, input, useEnv())} label="Copy as curl" icon={TerminalIcon} quiet />
);

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
export const Secret = ({
  value,
  children = 'Keep it in the settings of your server, not in its code.',
}: {
  value: string;
  /** What to do with it. */
  children?: string;
}): ReactNode => (
  <Stack gap="xs">
    <Text>This is shown once. {children}</Text>
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
