import { useState } from 'react';
import type { ReactNode } from 'react';
import { ParleyProvider, ThreadHeader, useConversationItem } from '@parley/react';
import type { ThreadHeaderProps } from '@parley/react';
import { CallsProvider, CallStage, IncomingCall, JoinCall, useCall, useCalls } from '@parley/react/calls';
import { About } from './about.tsx';
import { IconButton } from './controls.tsx';
import { Icon } from './icons.tsx';
import { SessionContext, useSession } from './message.tsx';
import type { Session } from './session.ts';
import { useValue } from './store.ts';

/** One person's part of the page: whatever is in it is hers. */
export const Person = ({ session, children }: { session: Session; children: ReactNode }) => (
  <SessionContext value={session}>
    <ParleyProvider client={session.client}>
      <CallsProvider calls={session.calls}>{children}</CallsProvider>
    </ParleyProvider>
  </SessionContext>
);

/** The call that rings, and the call that runs. */
export function Calls() {
  const call = useCall();
  return (
    <>
      <IncomingCall />
      {call ? (
        <div className="demo-stage">
          <CallStage call={call.handle} />
        </div>
      ) : null}
    </>
  );
}

/** Turns this person's network off and on. */
export function OfflineSwitch({ quiet = false }: { quiet?: boolean }) {
  const { network } = useSession();
  const offline = useValue(network.offline);
  const label = offline ? 'Go online' : 'Go offline';
  const icon = offline ? 'online' : 'offline';
  if (quiet) return <IconButton icon={icon} label={label} onPress={() => network.cut(!offline)} />;
  return (
    <button type="button" className="demo-button" onClick={() => network.cut(!offline)}>
      <Icon name={icon} size={15} />
      {label}
    </button>
  );
}

/** The head of a thread with what one can do in it. */
export function Head({ conversationId, onLeft, ...props }: ThreadHeaderProps & { onLeft?: () => void }) {
  const calls = useCalls();
  const item = useConversationItem(conversationId);
  const [about, setAbout] = useState(false);
  const [problem, setProblem] = useState('');
  const start = (kind: 'audio' | 'video'): void => {
    setProblem('');
    calls.start(conversationId, { kind }).then(
      () => undefined,
      (error: unknown) => setProblem((error as Error).message),
    );
  };
  return (
    <>
      <ThreadHeader
        {...props}
        conversationId={conversationId}
        actions={
          <>
            {props.actions}
            <JoinCall conversationId={conversationId} />
            <IconButton icon="phone" label="Call" onPress={() => start('audio')} />
            <IconButton icon="camera" label="Call with video" onPress={() => start('video')} />
            <IconButton
              icon="people"
              label={item?.type === 'group' ? 'Members' : 'About this chat'}
              onPress={() => setAbout(true)}
            />
          </>
        }
      />
      {problem === '' ? null : (
        <p className="demo-problem" role="alert">
          {problem}
          <IconButton icon="close" label="Dismiss" onPress={() => setProblem('')} />
        </p>
      )}
      {about ? (
        <About
          conversationId={conversationId}
          onClose={() => setAbout(false)}
          onLeft={() => {
            setAbout(false);
            onLeft?.();
          }}
        />
      ) : null}
    </>
  );
}
