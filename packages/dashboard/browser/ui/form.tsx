import { Button, Group, Modal, Stack } from '@mantine/core';
import PlusIcon from 'lucide-react/icons/plus';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { ApiFailure } from '../api/call.ts';
import { Icon } from './icon.tsx';
import { Failed } from './states.tsx';

/** Fields in a dialog, with the error and the buttons to send and to cancel. */
export const DialogForm = (props: {
  /** A verb and its object. */
  label: string;
  pending: boolean;
  error: ApiFailure | null;
  submit: () => void;
  cancel: () => void;
  disabled?: boolean;
  children: ReactNode;
}): ReactNode => (
  <form
    onSubmit={(event) => {
      event.preventDefault();
      props.submit();
    }}
  >
    <Stack>
      {props.children}
      {props.error ? <Failed error={props.error} /> : null}
      <Group justify="flex-end">
        <Button variant="default" onClick={props.cancel}>
          Cancel
        </Button>
        <Button type="submit" loading={props.pending} disabled={props.disabled ?? false}>
          {props.label}
        </Button>
      </Group>
    </Stack>
  </form>
);

/** A button that opens a dialog; closing the dialog clears its fields. */
export function NewButton(props: {
  label: string;
  /** Where the same button stands elsewhere on the page. */
  again?: boolean | undefined;
  form: (close: () => void) => ReactNode;
}): ReactNode {
  const [opened, setOpened] = useState(false);
  const close = (): void => setOpened(false);
  return (
    <>
      <Button
        {...(props.again ? { variant: 'default' } : {})}
        leftSection={<Icon of={PlusIcon} />}
        onClick={() => setOpened(true)}
      >
        {props.label}
      </Button>
      <Modal opened={opened} onClose={close} title={props.label}>
        {props.form(close)}
      </Modal>
    </>
  );
}
