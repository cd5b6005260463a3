import { Alert, Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { ApiFailure } from '../api/call.ts';
import { useProductionName } from '../api/roles.ts';

/** A field for the name that must be typed, where one must, and whether it was. */
export function useTypedName(name: string | undefined): {
  ready: boolean;
  field: ReactNode;
  clear: () => void;
} {
  const [text, setText] = useState('');
  return {
    ready: name === undefined || text === name,
    clear: () => setText(''),
    field:
      name === undefined ? null : (
        <TextInput
          label={
            <>
              Type <b>{name}</b> to confirm
            </>
          }
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          autoComplete="off"
          data-autofocus
        />
      ),
  };
}

/** A destructive action, confirmed: in production by typing the environment's name. */
export function ConfirmButton(props: {
  label: string;
  title: string;
  children: ReactNode;
  /** What must be typed; null: a click is enough; left out: the name of a production environment, unless it is harmless. */
  typed?: string | null | undefined;
  pending?: boolean;
  error?: ApiFailure | null;
  onConfirm: () => Promise<unknown>;
  disabled?: boolean;
  /** The action destroys nothing. */
  harmless?: boolean;
  /** The one thing that a page is for. */
  primary?: boolean;
}): ReactNode {
  const [opened, setOpened] = useState(false);
  const production = useProductionName();
  const { ready, field, clear } = useTypedName(
    props.typed === undefined && !props.harmless ? production : (props.typed ?? undefined),
  );
  const close = (): void => {
    setOpened(false);
    clear();
  };
  const confirm = (): void => {
    // The failure is shown in the dialog, which stays open.
    void props.onConfirm().then(close, () => undefined);
  };
  return (
    <>
      <Button
        {...(props.primary
          ? {}
          : {
              ...(props.harmless ? { variant: 'default' } : { color: 'red', variant: 'light' }),
              size: 'compact-sm',
            })}
        disabled={props.disabled ?? false}
        onClick={() => setOpened(true)}
      >
        {props.label}
      </Button>
      <Modal opened={opened} onClose={close} title={props.title}>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (ready) confirm();
          }}
        >
          <Stack>
            <Text component="div">{props.children}</Text>
            {field}
            {props.error ? (
              <Alert color="red" variant="light" role="alert">
                {props.error.message}
              </Alert>
            ) : null}
            <Group justify="flex-end">
              <Button variant="default" onClick={close}>
                Cancel
              </Button>
              <Button
                type="submit"
                {...(props.harmless ? {} : { color: 'red' })}
                disabled={!ready}
                loading={props.pending ?? false}
              >
                {props.label}
              </Button>
            </Group>
          </Stack>
        </form>
      </Modal>
    </>
  );
}
