import { Alert, Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { ApiFailure } from '../api/call.ts';

/** A destructive action, confirmed: by typing a word where there is no way back. */
export function ConfirmButton(props: {
  label: string;
  title: string;
  children: ReactNode;
  /** What must be typed; undefined: a click is enough. */
  typed?: string | undefined;
  pending?: boolean;
  error?: ApiFailure | null;
  onConfirm: () => Promise<unknown>;
  disabled?: boolean;
  /** Nothing is lost by it. */
  harmless?: boolean;
}): ReactNode {
  const [opened, setOpened] = useState(false);
  const [text, setText] = useState('');
  const ready = props.typed === undefined || text === props.typed;
  const close = (): void => {
    setOpened(false);
    setText('');
  };
  const confirm = (): void => {
    // The failure is shown in the dialog, which stays open.
    void props.onConfirm().then(close, () => undefined);
  };
  return (
    <>
      <Button
        {...(props.harmless ? { variant: 'default' } : { color: 'red', variant: 'light' })}

        size="compact-sm"
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
            {props.typed === undefined ? null : (
              <TextInput
                label={
                  <>
                    Type <b>{props.typed}</b> to confirm
                  </>
                }
                value={text}
                onChange={(event) => setText(event.currentTarget.value)}
                autoComplete="off"
                data-autofocus
              />
            )}
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
