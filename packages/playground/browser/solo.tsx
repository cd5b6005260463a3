import { useEffect, useMemo, useState } from 'react';
import type { ReactNode } from 'react';
import { Chat, useUnreadTotal } from '@parley/react';
import type { ThreadHeaderProps } from '@parley/react';
import { WirePanel } from '@parley/react/devtools';
import { Code } from './code.tsx';
import { DemoComposer } from './composer.tsx';
import { IconButton } from './controls.tsx';
import { Icon } from './icons.tsx';
import type { IconName } from './icons.tsx';
import { UndoMessage, useSession } from './message.tsx';
import { NewChat } from './new-chat.tsx';
import { Calls, Head } from './person.tsx';
import { useMedia } from './store.ts';

export type Panel = 'wire' | 'code';
type Tab = 'chats' | Panel | 'you';

const tabs: readonly { id: Tab; label: string; icon: IconName }[] = [
  { id: 'chats', label: 'Chats', icon: 'chats' },
  { id: 'wire', label: 'Wire', icon: 'wire' },
  { id: 'code', label: 'Code', icon: 'code' },
  { id: 'you', label: 'You', icon: 'person' },
];
const panels = tabs.filter((tab) => tab.id === 'wire' || tab.id === 'code') as { id: Panel; label: string }[];

interface SoloProps {
  selected: string | null;
  onSelect: (id: string | null) => void;
  /** What a narrow screen shows behind "You". */
  you: ReactNode;
}

/** One person: the list, a conversation, and beside it the wire or the code. */
export function Solo({ selected, onSelect, you }: SoloProps) {
  const wide = useMedia('(width >= 70em)');
  const narrow = useMedia('(width < 48em)');
  const { network } = useSession();
  const [panel, setPanel] = useState<Panel>('wire');
  const [tab, setTab] = useState<Tab>('chats');
  const [making, setMaking] = useState(false);
  const slots = useMemo(
    () => ({
      Header: (props: ThreadHeaderProps) => <Head {...props} onLeft={() => onSelect(null)} />,
      Message: UndoMessage,
      Composer: DemoComposer,
    }),
    [onSelect],
  );
  useTitle();
  const shown = wide || tab === 'chats' ? 'chats' : tab;
  const content = (of: Panel) =>
    of === 'wire' ? <WirePanel wire={network.wire} conversationId={selected} reveal /> : <Code />;
  return (
    <div
      className="demo-solo"
      data-tab={shown}
      data-view={selected === null ? 'list' : 'thread'}
      // On a phone the list is all there is, and the kit's own main part is hidden.
      role={narrow && shown === 'chats' && selected === null ? 'main' : undefined}
    >
      {shown === 'chats' ? (
        <Chat
          selectedId={selected}
          onSelect={onSelect}
          slots={slots}
          list={{ actions: <IconButton icon="compose" label="New chat" onPress={() => setMaking(true)} /> }}
          empty={<p className="parley-empty demo-empty">Choose a conversation, or begin one.</p>}
          aside={
            wide ? (
              <div className="demo-aside">
                <div role="tablist" aria-label="Beside the chat" className="demo-tabs">
                  {panels.map(({ id, label }) => (
                    <button
                      key={id}
                      type="button"
                      role="tab"
                      id={`tab-${id}`}
                      aria-selected={id === panel}
                      aria-controls="panel"
                      onClick={() => setPanel(id)}
                    >
                      {label}
                    </button>
                  ))}
                </div>
                <div role="tabpanel" id="panel" aria-labelledby={`tab-${panel}`}>
                  {content(panel)}
                </div>
              </div>
            ) : null
          }
        />
      ) : (
        <main className="demo-page">
          {shown === 'you' ? (
            you
          ) : (
            <>
              <h2>{shown === 'wire' ? 'Wire' : 'Code'}</h2>
              {content(shown)}
            </>
          )}
        </main>
      )}
      {wide ? null : (
        <nav className="demo-bottom" aria-label="Parts of the demo">
          {tabs.map(({ id, label, icon }) => (
            <button
              key={id}
              type="button"
              aria-current={id === tab ? 'page' : undefined}
              onClick={() => setTab(id)}
            >
              <Icon name={icon} size={20} />
              {label}
            </button>
          ))}
        </nav>
      )}
      {making ? (
        <NewChat
          onClose={() => setMaking(false)}
          onMade={(id) => {
            setMaking(false);
            onSelect(id);
          }}
        />
      ) : null}
      <Calls />
    </div>
  );
}

/** Unread messages stand in the title of the tab. */
function useTitle(): void {
  const unread = useUnreadTotal();
  useEffect(() => {
    document.title = unread > 0 ? `(${unread}) Parley demo` : 'Parley demo';
  }, [unread]);
}
