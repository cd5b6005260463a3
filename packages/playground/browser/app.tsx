import { useCallback, useEffect, useState } from 'react';
import { Avatar } from '@parley/react';
import { startBot } from './bot.ts';
import { IconButton } from './controls.tsx';
import { Duo } from './duo.tsx';
import { Icon, Wordmark } from './icons.tsx';
import { SessionContext } from './message.tsx';
import { bot, firstName, forgetUser, nameOf, rememberedUser, rememberUser, samples } from './people.ts';
import { OfflineSwitch, Person } from './person.tsx';
import { seed } from './seed.ts';
import { sessionOf } from './session.ts';
import type { Session } from './session.ts';
import { SignIn } from './sign-in.tsx';
import { Solo } from './solo.tsx';
import { useMedia } from './store.ts';
import { toggleTheme } from './theme.ts';

export function App() {
  const [session, setSession] = useState<Session | null>(() => {
    const remembered = rememberedUser();
    return remembered === null ? null : sessionOf(remembered);
  });
  if (!session)
    return (
      <SignIn
        onChoose={(id) => {
          rememberUser(id);
          setSession(sessionOf(id));
        }}
      />
    );
  const leave = (): void => {
    forgetUser();
    session.close();
    setSession(null);
  };
  return <Inside key={session.userId} session={session} onLeave={leave} />;
}

function Inside({ session, onLeave }: { session: Session; onLeave: () => void }) {
  const wideEnough = useMedia('(width >= 60em)');
  const [mode, setMode] = useState<'one' | 'two'>('one');
  const [selected, setSelected] = useState<string | null>(null);
  const [partner, setPartner] = useState(() => samples.find(({ id }) => id !== session.userId)!.id);
  const duo = mode === 'two' && wideEnough;
  useEffect(startBot, []);
  useFirstConversations(session, setSelected);
  const bothSides = useCallback((): void => {
    const { items } = session.client.conversations.get();
    const chosen = items.find(({ id, type }) => id === selected && type === 'direct');
    const other = chosen?.members?.find(({ userId }) => userId !== session.userId)?.userId;
    if (other !== undefined && other !== bot.id) setPartner(other);
    setMode('two');
  }, [session, selected]);
  return (
    <div className="demo-app" data-mode={duo ? 'two' : 'one'}>
      <header className="demo-bar">
        <h1>
          <Wordmark height={24} />
          <span>demo</span>
        </h1>
        {wideEnough ? (
          <div className="demo-segments" role="group" aria-label="View">
            <button type="button" aria-pressed={!duo} onClick={() => setMode('one')}>
              <Icon name="one" size={15} />
              One person and the wire
            </button>
            <button type="button" aria-pressed={duo} onClick={bothSides}>
              <Icon name="two" size={15} />
              Two people
            </button>
          </div>
        ) : null}
        <SessionContext value={session}>{duo ? null : <OfflineSwitch quiet />}</SessionContext>
        <IconButton icon="theme" label="Light or dark" onPress={toggleTheme} />
        <span className="demo-me">
          <Avatar id={session.userId} name={nameOf(session.userId)} size={28} />
          <b>{firstName(session.userId)}</b>
        </span>
        <IconButton icon="leave" label="Be somebody else" onPress={onLeave} />
      </header>
      {duo ? (
        <Duo me={session} partner={partner} onPartner={setPartner} />
      ) : (
        <Person session={session}>
          <Solo
            selected={selected}
            onSelect={setSelected}
            you={<You session={session} onLeave={onLeave} />}
          />
        </Person>
      )}
    </div>
  );
}

/** Creates the first conversations of a new user; a wide screen opens the newest. */
function useFirstConversations(
  session: Session,
  select: (choose: (chosen: string | null) => string | null) => void,
): void {
  useEffect(() => {
    const { client } = session;
    let over = false;
    const begin = async (): Promise<void> => {
      await client.connect();
      if (client.conversations.get().items.length === 0) await seed(session.userId);
      if (over || !matchMedia('(width >= 48em)').matches) return;
      const openNewest = (): boolean => {
        const newest = client.conversations.get().items[0];
        // Unless somebody has chosen meanwhile.
        if (newest) select((chosen) => chosen ?? newest.id);
        return newest !== undefined;
      };
      if (openNewest()) return;
      const off = client.conversations.subscribe(() => {
        if (over || openNewest()) off();
      });
    };
    begin().catch(() => undefined); // The list stays empty, and one may begin a chat.
    return () => void (over = true);
  }, [session, select]);
}

function You({ session, onLeave }: { session: Session; onLeave: () => void }) {
  return (
    <div className="demo-you">
      <Avatar id={session.userId} name={nameOf(session.userId)} size={64} />
      <h2>{nameOf(session.userId)}</h2>
      <OfflineSwitch />
      <button type="button" className="demo-button" onClick={toggleTheme}>
        <Icon name="theme" size={15} />
        Light or dark
      </button>
      <button type="button" className="demo-button" onClick={onLeave}>
        <Icon name="leave" size={15} />
        Be somebody else
      </button>
      <p>
        <a href="/docs">Documentation</a>
        <a href="/dashboard">Dashboard</a>
        <a href="/connection-test">Can I make calls from here?</a>
      </p>
    </div>
  );
}
