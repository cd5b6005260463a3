import { createContext, memo, useContext } from 'react';
import { Message } from '@parley/react';
import type { MessageProps } from '@parley/react';
import { Icon } from './icons.tsx';
import type { Session } from './session.ts';
import { useValue } from './store.ts';

export const SessionContext = createContext<Session | null>(null);
/** The person in whose part of the page this is. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error('There is no session around this.');
  return session;
}

/** A message of the kit, that may be taken back for five seconds when it is deleted. */
export const UndoMessage = memo(function UndoMessage(props: MessageProps) {
  const { deletions } = useSession();
  const pending = useValue(deletions.pending);
  const { item, first } = props;
  const { id } = item;
  if (id !== null && pending.has(id))
    return (
      <li className="demo-undo" data-key={item.key} data-first={first || undefined}>
        <span role="status">Deleted for everyone.</span>
        <button type="button" autoFocus onClick={() => deletions.undo(id)}>
          <Icon name="undo" size={14} />
          Undo
        </button>
      </li>
    );
  return <Message {...props} onDelete={() => id !== null && deletions.add(item.conversationId, id)} />;
});
