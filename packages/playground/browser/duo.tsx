import { useEffect, useMemo, useState } from 'react';
import { Thread, usePresence } from '@parley/react';
import type { ThreadHeaderProps } from '@parley/react';
import { SequenceView } from '@parley/react/devtools';
import { DemoComposer } from './composer.tsx';
import { UndoMessage } from './message.tsx';
import { firstName, nameOf, samples } from './people.ts';
import { Calls, Head, OfflineSwitch, Person } from './person.tsx';
import { ensurePeople, sessionOf } from './session.ts';
import type { Session } from './session.ts';

interface DuoProps {
  me: Session;
  partner: string;
  onPartner: (userId: string) => void;
}

/** Two people in one page: the same kit twice, the second in another colour by its tokens alone. */
export function Duo({ me, partner, onPartner }: DuoProps) {
  const [pair, setPair] = useState<{ id: string; other: Session } | null>(null);
  const [problem, setProblem] = useState('');
  useEffect(() => {
    let over = false;
    const meet = async (): Promise<void> => {
      await ensurePeople([me.userId, partner]);
      const chat = await me.client.conversations.createDirect(partner);
      chat.close(); // The threads open it for themselves.
      if (over) return;
      setProblem('');
      setPair({ id: chat.id, other: sessionOf(partner) });
    };
    meet().catch((error: unknown) => over || setProblem((error as Error).message));
    return () => void (over = true);
  }, [me, partner]);
  const other = pair?.other.userId === partner ? pair.other : null;
  // Whoever goes from the screen goes offline.
  useEffect(() => (other ? () => other.close() : undefined), [other]);
  if (problem)
    return (
      <p className="demo-problem" role="alert">
        {problem}
      </p>
    );
  if (!pair || !other) return <div className="demo-duo" aria-busy="true" />;
  return (
    <main className="demo-duo">
      <Side session={me} id={pair.id} other={partner} />
      <Side session={other} id={pair.id} other={me.userId} onPerson={onPartner} />
      <SequenceView
        conversationId={pair.id}
        people={[me, other].map(({ userId, network: { wire } }) => ({
          userId,
          name: firstName(userId),
          wire,
        }))}
      />
    </main>
  );
}

interface SideProps {
  session: Session;
  id: string;
  other: string;
  onPerson?: (userId: string) => void;
}

const Side = ({ session, id, other, onPerson }: SideProps) => (
  <Person session={session}>
    <SideThread session={session} id={id} other={other} {...(onPerson ? { onPerson } : {})} />
  </Person>
);

function SideThread({ session, id, other, onPerson }: SideProps) {
  const { userId } = session;
  const slots = useMemo(
    () => ({
      Header: (props: ThreadHeaderProps) => (
        <Head
          {...props}
          actions={
            <>
              {props.actions}
              <OfflineSwitch />
            </>
          }
          subtitle={<Who userId={userId} other={other} {...(onPerson ? { onPerson } : {})} />}
        />
      ),
      Message: UndoMessage,
      Composer: DemoComposer,
    }),
    [userId, other, onPerson],
  );
  return (
    <div className="demo-side" data-voice={onPerson ? 'b' : 'a'}>
      <Thread conversationId={id} slots={slots} />
      <Calls />
    </div>
  );
}

function Who({ userId, other, onPerson }: Omit<SideProps, 'session' | 'id'> & { userId: string }) {
  const presence = usePresence([other]).get(other);
  const candidates = [...new Set([userId, ...samples.map(({ id }) => id)])].filter((id) => id !== other);
  return (
    <span className="demo-who">
      {onPerson ? (
        <label>
          You are{' '}
          <select value={userId} onChange={(event) => onPerson(event.target.value)}>
            {candidates.map((id) => (
              <option key={id} value={id}>
                {nameOf(id)}
              </option>
            ))}
          </select>
        </label>
      ) : (
        <b>You are {firstName(userId)}</b>
      )}
      {presence ? ` · ${firstName(other)} is ${presence.online ? 'online' : 'offline'}` : null}
    </span>
  );
}
