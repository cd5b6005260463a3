import { Button, Group, Text } from '@mantine/core';
import InIcon from 'lucide-react/icons/arrow-up-right';
import OutIcon from 'lucide-react/icons/arrow-down-left';
import { useEffect, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import type { TraceLine } from '@parley/protocol';
import type { ApiFailure } from '../api/call.ts';
import { addressOf } from '../api/address.ts';
import { lines } from '../api/call.ts';
import { useEnv } from '../api/hooks.ts';
import { useNames } from '../api/names.ts';
import { FilterBar, FilterText, useFilter } from '../ui/filter.tsx';
import { Icon } from '../ui/icon.tsx';
import { List, rows } from '../ui/list.tsx';
import { Numbers } from '../ui/numbers.tsx';
import { Page } from '../ui/page.tsx';
import { plain } from '../ui/figures.ts';
import { Empty, Failed } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';

/** Live frames of one user's sockets, without their content. */

/** As many as the service sends in one trace. */
const mostLines = 2_000;
const seconds = 120;
type Numbered = TraceLine & { no: number };

export default function Trace(): ReactNode {
  const [userId] = useFilter('userId');
  return (
    <Page title="Trace" call={['live.trace', { userId: userId || 'alice', seconds }]}>
      <FilterBar names={['userId']}>
        <FilterText name="userId" label="User" placeholder="alice" />
      </FilterBar>
      {userId === '' ? (
        <Empty title="Choose a user">
          You see every frame of the user’s sockets for two minutes: kind, size and conversation, but not the
          content. The audit log records that you traced the user.
        </Empty>
      ) : (
        <Frames key={userId} userId={userId} />
      )}
    </Page>
  );
}

function useTrace(userId: string) {
  const env = useEnv();
  const [shown, setShown] = useState<Numbered[]>([]);
  const [running, setRunning] = useState(false);
  const [sessions, setSessions] = useState<number | null>(null);
  const [failure, setFailure] = useState<ApiFailure | null>(null);
  const stop = useRef<AbortController | null>(null);
  useEffect(() => () => stop.current?.abort(), []);

  const start = async (): Promise<void> => {
    const abort = new AbortController();
    stop.current = abort;
    setRunning(true);
    setFailure(null);
    setShown([]);
    let no = 0;
    try {
      for await (const line of lines<TraceLine>(
        addressOf('live.trace', { userId, seconds }, env),
        abort.signal,
      )) {
        if (line.t === 'trace.started') setSessions(line.sessions ?? 0);
        else if (line.t !== 'trace.alive')
          setShown((before) => [{ ...line, no: no++ }, ...before].slice(0, mostLines));
      }
    } catch (error) {
      if (!abort.signal.aborted) setFailure(error as ApiFailure);
    }
    setRunning(false);
  };
  return { shown, running, sessions, failure, start, end: () => stop.current?.abort() };
}

function Frames({ userId }: { userId: string }): ReactNode {
  const trace = useTrace(userId);
  const name = useNames([userId])(userId);
  return (
    <>
      <Group gap="md">
        {trace.running ? (
          <Button variant="default" onClick={trace.end}>
            Stop
          </Button>
        ) : (
          <Button onClick={() => void trace.start()}>Follow {name} for two minutes</Button>
        )}
        <Text c="dimmed" role="status">
          {trace.running
            ? trace.sessions === null
              ? 'Beginning …'
              : `Following ${trace.sessions} open ${trace.sessions === 1 ? 'socket' : 'sockets'}, and sockets that open later.`
            : 'Each frame with its kind, size and conversation, but not its content. The audit log records that you traced the user.'}
        </Text>
      </Group>
      {trace.failure ? <Failed error={trace.failure} /> : null}
      {trace.shown.length > 0 ? (
        <>
          <Totals of={trace.shown} name={name} />
          <List
            what="frames"
            pages={rows(trace.shown)}
            rowKey={(line) => String(line.no)}
            columns={[
              {
                title: 'At',
                cell: (line) => (
                  <span className="mono">
                    <Time at={line.at} exact />
                  </span>
                ),
              },
              { title: 'Direction', cell: (line) => <Direction line={line} name={name} /> },
              { title: 'Frame', cell: (line) => <span className="mono">{line.e ?? line.t}</span> },
              {
                title: 'Conversation',
                cell: (line) => <span className="mono wrap">{line.cid ?? ''}</span>,
                wide: true,
              },
              { title: 'Seq', cell: (line) => line.seq ?? '', wide: true },
              { title: 'Code', cell: (line) => line.code ?? line.reason ?? '' },
              { title: 'Bytes', cell: (line) => line.bytes ?? '', wide: true },
              {
                title: 'Session',
                cell: (line) => <span className="mono wrap">{line.sessionId ?? ''}</span>,
                wide: true,
              },
            ]}
            empty={null}
          />
        </>
      ) : trace.running ? (
        <Empty title="No frames yet">Frames appear here as they are sent.</Empty>
      ) : null}
    </>
  );
}

function Totals({ of, name }: { of: Numbered[]; name: string }): ReactNode {
  const [said, heard] = (['in', 'out'] as const).map((way) =>
    of.filter(({ direction }) => direction === way),
  );
  const bytes = (some: Numbered[]): string =>
    `${plain(some.reduce((sum, line) => sum + (line.bytes ?? 0), 0))} bytes`;
  const errors = of.filter(({ t, code }) => t === 'error' || (t !== 'close' && code !== undefined)).length;
  return (
    <Numbers
      label="Frames so far"
      of={[
        { label: `From ${name}`, value: said!.length, note: bytes(said!) },
        { label: `To ${name}`, value: heard!.length, note: bytes(heard!) },
        { label: 'Errors', value: errors, note: errors === 0 ? 'none' : 'see the column Code' },
      ]}
    />
  );
}

/** An arrow up for frames from the user, an arrow down for frames to the user. */
const Direction = ({ line, name }: { line: TraceLine; name: string }): ReactNode =>
  line.direction === undefined ? null : line.direction === 'in' ? (
    <span className="frame-in">
      <Icon of={InIcon} size={14} /> from {name}
    </span>
  ) : (
    <span className="frame-out">
      <Icon of={OutIcon} size={14} /> to {name}
    </span>
  );
