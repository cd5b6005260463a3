import { Alert, Button, Group, Modal, Stack } from '@mantine/core';
import { useEffect, useState } from 'react';
import type { ReactNode } from 'react';

/** A dialog that shows something once: it asks before it closes with anything but its own button. */
export function SecretDialog(props: {
  opened: boolean;
  title: string;
  /** Whether the secret is on the screen; before that it closes like any other. */
  secret: boolean;
  onClose: () => void;
  children: ReactNode;
}): ReactNode {
  const [asked, setAsked] = useState(false);
  const close = (): void => {
    setAsked(false);
    props.onClose();
  };
  const ask = (): void => (props.secret ? setAsked(true) : close());
  const waits = props.opened && props.secret;
  useEffect(() => {
    if (!waits) return;
    const press = (event: KeyboardEvent): void => {
      if (event.key === 'Escape') setAsked(true);
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [waits]);
  return (
    <Modal
      opened={props.opened}
      onClose={ask}
      title={props.title}
      closeOnClickOutside={!props.secret}
      closeOnEscape={!props.secret}
    >
      <Stack>
        {props.children}
        {asked ? (
          <Alert color="yellow" variant="light" role="alert" title="Have you saved it?">
            <Stack gap="xs">
              It cannot be shown again.
              <Group gap="xs">
                <Button variant="default" size="compact-sm" onClick={() => setAsked(false)}>
                  Not yet
                </Button>
                <Button variant="default" size="compact-sm" onClick={close}>
                  Close it
                </Button>
              </Group>
            </Stack>
          </Alert>
        ) : null}
        {props.secret ? <Button onClick={close}>Done</Button> : null}
      </Stack>
    </Modal>
  );
}
