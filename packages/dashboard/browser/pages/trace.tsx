import { Alert, Button, Code, Group, Text } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import type { TraceLine } from '@parley/protocol';
import type { ApiFailure } from '../api/call.ts';
import { addressOf, lines } from '../api/call.ts';
import { useEnv } from '../api/hooks.ts';
import { FilterBar, FilterText, useFilter } from '../ui/filter.tsx';
import { List } from '../ui/list.tsx';
import { Page } from '../ui/page.tsx';
import { Empty, Failed } from '../ui/states.tsx';
import { Tag } from '../ui/tag.tsx';

/** Frames of one user's sockets as they go by, without what they say. */

/** As many as the service sends in one trace. */
const mostLines = 2_000;
const seconds = 120;
const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
} as const);

type Numbered = TraceLine & { no: number };

export default function Trace(): ReactNode {
  const [userId] = useFilter('userId');
  return (
    <Page title="Trace" call={['live.trace', { userId: userId || 'alice', seconds }]}>
      <FilterBar names={['userId']}>
        <FilterText name="userId" label="User" placeholder="alice" />
      </FilterBar>
      {userId === '' ? (
        <Empty title="Whose frames?">
          You see every frame of the user’s sockets for two minutes: its kind, size and conversation, never
          what it says. That you looked is noted in the audit.
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
  return (
    <>
      <Group gap="md">
        {trace.running ? (
          <Button variant="default" onClick={trace.end}>
            Stop
          </Button>
        ) : (
          <Button onClick={() => void trace.start()}>Follow {userId} for two minutes</Button>
        )}
        <Text size="sm" role="status">
          {trace.running
            ? trace.sessions === null
              ? 'Beginning …'
              : `Following ${trace.sessions} open ${trace.sessions === 1 ? 'socket' : 'sockets'} and those that come.`
            : ''}
        </Text>
      </Group>
      {trace.failure ? <Failed error={trace.failure} /> : null}
      {trace.shown.length > 0 ? (
        <List
          what="frames"
          pages={{
            items: trace.shown,
            error: null,
            more: null,
            loadingMore: false,
            refresh: () => undefined,
          }}
          rowKey={(line) => String(line.no)}
          columns={[
            { title: 'At', cell: (line) => clock.format(Date.parse(line.at)) },
            { title: '', cell: (line) => <Direction line={line} /> },
            { title: 'Frame', cell: (line) => <Code>{line.e ?? line.t}</Code> },
            { title: 'Conversation', cell: (line) => line.cid ?? '', wide: true },
            { title: 'Seq', cell: (line) => line.seq ?? '', wide: true },
            { title: 'Code', cell: (line) => line.code ?? line.reason ?? '' },
            { title: 'Bytes', cell: (line) => line.bytes ?? '', wide: true },
            { title: 'Session', cell: (line) => line.sessionId ?? '', wide: true },
          ]}
          empty={null}
        />
      ) : trace.running ? (
        <Alert color="gray" variant="light">
          Nothing went by yet.
        </Alert>
      ) : null}
    </>
  );
}

const Direction = ({ line }: { line: TraceLine }): ReactNode =>
  line.direction === undefined ? null : (
    <Tag tone={line.direction === 'in' ? 'ok' : 'neutral'}>
      {line.direction === 'in' ? 'from it' : 'to it'}
    </Tag>
  );
