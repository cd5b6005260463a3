import { Button, Code } from '@mantine/core';
import type { ReactNode } from 'react';
import { useChange, usePages, useRows } from '../api/hooks.ts';
import { useMay } from '../api/roles.ts';
import { ConfirmButton } from '../ui/confirm.tsx';
import { List } from '../ui/list.tsx';
import { Section } from '../ui/page.tsx';
import { Empty, Failed } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';
import { Tag } from '../ui/tag.tsx';

/** How a user is reached: sockets of the last days, and devices. */
export const UserConnections = ({ userId }: { userId: string }): ReactNode => (
  <>
    <Sockets userId={userId} />
    <Devices userId={userId} />
  </>
);

function Sockets({ userId }: { userId: string }): ReactNode {
  const pages = usePages('users.sessions', { userId, limit: 10 }, { everyMs: 5_000 });
  const end = useChange('users.endSession');
  const may = useMay('users.endSession');
  return (
    <Section title="Sockets of the last 7 days">
      {end.error ? <Failed error={end.error} /> : null}
      <List
        what="sockets"
        pages={pages}
        rowKey={(socket) => socket.id}
        columns={[
          { title: 'Opened', cell: (socket) => <Time at={socket.openedAt} /> },
          {
            title: 'Closed',
            cell: (socket) =>
              socket.closedAt ? (
                <>
                  <Time at={socket.closedAt} /> {socket.closeCode === null ? '' : `(${socket.closeCode})`}
                </>
              ) : (
                <Tag tone="ok">open</Tag>
              ),
          },
          { title: 'Client', cell: (socket) => socket.sdk ?? '', wide: true },
          { title: 'Address', cell: (socket) => socket.address ?? '', wide: true },
          { title: 'Session', cell: (socket) => <Code>{socket.id}</Code>, wide: true },
          {
            title: '',
            cell: (socket) =>
              may && !socket.closedAt ? (
                <Button
                  size="compact-xs"
                  variant="default"
                  onClick={() => end.mutate({ userId, sessionId: socket.id })}
                >
                  Close
                </Button>
              ) : null,
          },
        ]}
        empty={<Empty title="Not connected in the last 7 days" />}
      />
    </Section>
  );
}

function Devices({ userId }: { userId: string }): ReactNode {
  const pages = useRows('users.devices', { userId });
  const remove = useChange('users.removeDevice');
  const test = useChange('push.test');
  const may = useMay('users.removeDevice');
  const mayTest = useMay('push.test');
  return (
    <Section title="Devices for push">
      {test.error ? <Failed error={test.error} /> : null}
      <List
        what="devices"
        pages={pages}
        rowKey={(device) => device.id}
        columns={[
          { title: 'Provider', cell: (device) => device.provider },
          { title: 'Token', cell: (device) => <Code>…{device.tokenEnd}</Code> },
          { title: 'Registered', cell: (device) => <Time at={device.registeredAt} />, wide: true },
          {
            title: 'Test',
            cell: (device) => {
              const result = test.data?.data.find(({ deviceId }) => deviceId === device.id);
              return (
                <>
                  {mayTest ? (
                    <Button
                      size="compact-xs"
                      variant="default"
                      loading={test.isPending && test.variables.deviceId === device.id}
                      onClick={() => test.mutate({ userId, deviceId: device.id })}
                    >
                      Send a test
                    </Button>
                  ) : null}{' '}
                  <span role="status">
                    {result ? [result.result, result.reason].filter(Boolean).join(': ') : ''}
                  </span>
                </>
              );
            },
          },
          {
            title: '',
            cell: (device) =>
              may ? (
                <ConfirmButton
                  label="Remove"
                  title={`Remove the device …${device.tokenEnd}?`}
                  pending={remove.isPending}
                  error={remove.error}
                  onConfirm={() => remove.mutateAsync({ userId, deviceId: device.id })}
                >
                  The device gets no pushes until its app registers it again.
                </ConfirmButton>
              ) : null,
          },
        ]}
        empty={<Empty title="No devices">The client SDK registers them with push.add.</Empty>}
      />
    </Section>
  );
}
