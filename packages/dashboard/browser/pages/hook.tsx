import { Alert, Button, Checkbox, Group, NativeSelect, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { Hook, Input } from '@parley/protocol';
import { useCall, useChange, useRows } from '../api/hooks.ts';
import { useMay } from '../api/roles.ts';
import { ConfirmButton } from '../ui/confirm.tsx';
import { Secret } from '../ui/copy.tsx';
import { Field } from '../ui/field.tsx';
import { DialogForm } from '../ui/form.tsx';
import { Numbers } from '../ui/numbers.tsx';
import { Section } from '../ui/page.tsx';
import { SecretDialog } from '../ui/secret-dialog.tsx';
import { Failed } from '../ui/states.tsx';
import { Tag } from '../ui/tag.tsx';
import { Time } from '../ui/time.tsx';

/** The before-send hook: its settings, its figures, and the form to change it. */

const kind = 'before-send';
const everyMs = 10_000;
type Settings = Omit<Input<'hooks.set'>, 'kind'>;

export function BeforeSendHook(): ReactNode {
  const { items, error } = useRows('hooks.list', {});
  const may = useMay('hooks.set');
  const [editing, setEditing] = useState(false);
  if (error) return <Failed error={error} />;
  if (!items) return null;
  const hook = items.find((one) => one.kind === kind);
  const edit = (): void => setEditing(true);
  return (
    <Section title="Before-send hook">
      <Stack gap="sm">
        {hook ? (
          <HookState hook={hook} />
        ) : (
          <Text size="sm" c="dimmed">
            One URL that allows, rejects or rewrites every message before it is stored.
          </Text>
        )}
        {may && hook ? <Manage edit={edit} /> : null}
        {may && !hook ? (
          <Group>
            <Button variant="default" onClick={edit}>
              Set up the hook
            </Button>
          </Group>
        ) : null}
      </Stack>
      <EditHook opened={editing} close={() => setEditing(false)} begin={hook ?? null} />
    </Section>
  );
}

const scopeOf = ({ edits, servers, types }: Hook): string =>
  [
    types === null ? 'messages' : `messages in ${types} conversations`,
    edits ? 'edits' : null,
    servers ? 'messages of your servers' : null,
  ]
    .filter(Boolean)
    .join(', ');

function HookState({ hook }: { hook: Hook }): ReactNode {
  const stats = useCall('hooks.stats', { kind }, { everyMs });
  const { calls, failures, allowed, rejected, rewritten, p50Ms, p99Ms } = stats.data ?? {};
  const ms = (value: number | null | undefined): string | undefined =>
    value === undefined ? undefined : value === null ? '–' : `${value} ms`;
  return (
    <>
      <Group gap="sm">
        {hook.failingSince === null ? (
          <Tag tone={allowed ? 'ok' : 'neutral'}>{allowed ? 'works' : 'set'}</Tag>
        ) : (
          <Tag tone="bad">
            fails since <Time at={hook.failingSince} />
          </Tag>
        )}
        <Text size="sm" ff="monospace" style={{ overflowWrap: 'anywhere' }}>
          {hook.url}
        </Text>
      </Group>
      <Text size="sm" c="dimmed">
        Called for {scopeOf(hook)}, with {hook.timeoutMs} ms to answer. Without an answer a message is{' '}
        {hook.onFailure === 'allow' ? 'stored unchanged' : 'refused, and the app tries again'}.
      </Text>
      {stats.error ? (
        <Failed error={stats.error} />
      ) : (
        <Numbers
          label="Calls of the last hour"
          of={[
            { label: 'Calls', value: calls, note: 'in the last hour' },
            {
              label: 'Verdicts',
              value: allowed,
              note: `allowed; ${rejected ?? '…'} rejected, ${rewritten ?? '…'} rewritten`,
            },
            { label: 'Failures', value: failures, note: 'no usable answer' },
            {
              label: 'Answers within',
              value: ms(p50Ms),
              note: `for half of the calls; ${ms(p99Ms) ?? '…'} for 99 %`,
            },
          ]}
        />
      )}
    </>
  );
}

/** Sets the hook. A new one shows its secret in the same dialog, which therefore outlives the change. */
function EditHook(props: { opened: boolean; close: () => void; begin: Hook | null }): ReactNode {
  const [secret, setSecret] = useState<string | null>(null);
  const end = (): void => {
    props.close();
    setSecret(null);
    set.reset();
  };
  const set = useChange('hooks.set', {
    done: ({ secret: made }) => (made === undefined ? end() : setSecret(made)),
  });
  return (
    <SecretDialog
      opened={props.opened}
      onClose={end}
      title={secret === null ? 'The before-send hook' : 'The hook’s signing secret'}
      secret={secret !== null}
    >
      {secret === null ? (
        <HookForm
          begin={props.begin}
          pending={set.isPending}
          error={set.error}
          submit={(given) => set.mutate({ kind, ...given })}
          cancel={end}
        />
      ) : (
        <Secret value={secret} />
      )}
    </SecretDialog>
  );
}

function HookForm(props: {
  begin: Hook | null;
  pending: boolean;
  error: ReturnType<typeof useChange<'hooks.set'>>['error'];
  submit: (given: Settings) => void;
  cancel: () => void;
}): ReactNode {
  const { begin, error } = props;
  const [url, setUrl] = useState(begin?.url ?? '');
  const [timeoutMs, setTimeoutMs] = useState(String(begin?.timeoutMs ?? 1_000));
  const [onFailure, setOnFailure] = useState<string>(begin?.onFailure ?? 'allow');
  const [types, setTypes] = useState<string>(begin?.types ?? 'all');
  const [edits, setEdits] = useState(begin?.edits ?? true);
  const [servers, setServers] = useState(begin?.servers ?? false);
  return (
    <DialogForm
      label="Save the hook"
      pending={props.pending}
      error={error?.param === 'url' ? null : error}
      submit={() =>
        props.submit({
          url,
          timeoutMs: Number(timeoutMs),
          onFailure: onFailure as Hook['onFailure'],
          types: types === 'all' ? null : (types as 'direct' | 'group'),
          edits,
          servers,
        })
      }
      cancel={props.cancel}
    >
      <Field
        label="URL"
        placeholder="https://example.com/before-send"
        value={url}
        set={setUrl}
        error={error?.param === 'url' ? error.message : null}
        required
        data-autofocus
      />
      <Field
        label="Time to answer, in milliseconds"
        type="number"
        min={100}
        max={3_000}
        step={100}
        value={timeoutMs}
        set={setTimeoutMs}
        required
      />
      <NativeSelect
        label="Without an answer"
        value={onFailure}
        onChange={(event) => setOnFailure(event.currentTarget.value)}
        data={[
          { value: 'allow', label: 'Store the message unchanged' },
          { value: 'reject', label: 'Refuse it; the app tries again' },
        ]}
      />
      <NativeSelect
        label="Conversations"
        value={types}
        onChange={(event) => setTypes(event.currentTarget.value)}
        data={[
          { value: 'all', label: 'All' },
          { value: 'direct', label: 'Direct' },
          { value: 'group', label: 'Groups' },
        ]}
      />
      <Checkbox
        label="Also call the hook for edits"
        checked={edits}
        onChange={(event) => setEdits(event.currentTarget.checked)}
      />
      <Checkbox
        label="Also call the hook for messages of your servers"
        checked={servers}
        onChange={(event) => setServers(event.currentTarget.checked)}
      />
    </DialogForm>
  );
}

function Manage({ edit }: { edit: () => void }): ReactNode {
  const [secret, setSecret] = useState<string | null>(null);
  const test = useChange('hooks.test');
  const rotate = useChange('hooks.rotateSecret', { done: (made) => setSecret(made.secret) });
  const remove = useChange('hooks.delete');
  return (
    <>
      <Group gap="xs">
        <Button
          size="compact-sm"
          variant="default"
          loading={test.isPending}
          onClick={() => test.mutate({ kind })}
        >
          Test the hook
        </Button>
        <Button size="compact-sm" variant="default" onClick={edit}>
          Edit the hook
        </Button>
        <ConfirmButton
          harmless
          label="Rotate the secret"
          title="Rotate the signing secret?"
          pending={rotate.isPending}
          error={rotate.error}
          onConfirm={() => rotate.mutateAsync({ kind })}
        >
          Requests carry both signatures for 24 hours, so that you can switch to the new secret.
        </ConfirmButton>
        <ConfirmButton
          label="Remove"
          title="Remove the hook?"
          pending={remove.isPending}
          error={remove.error}
          onConfirm={() => remove.mutateAsync({ kind })}
        >
          Messages are then stored without a decision of your server.
        </ConfirmButton>
      </Group>
      {test.data ? (
        <Alert color={test.data.error === null ? 'teal' : 'red'} variant="light" role="status" py="xs">
          {test.data.error === null
            ? `The hook answered within ${test.data.durationMs} ms: ${test.data.verdict}.`
            : `The test failed: ${test.data.error}.`}
        </Alert>
      ) : null}
      {test.error ? <Failed error={test.error} /> : null}
      <SecretDialog
        opened={secret !== null}
        onClose={() => setSecret(null)}
        title="The new signing secret"
        secret
      >
        {secret === null ? null : <Secret value={secret} />}
      </SecretDialog>
    </>
  );
}
