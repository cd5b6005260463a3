import { useState } from 'react';
import type { SyntheticEvent } from 'react';
import { Avatar, useClient } from '@parley/react';
import { Search, Sheet } from './controls.tsx';
import { Icon } from './icons.tsx';
import { useSession } from './message.tsx';
import { bot, firstName, nameOf, samples, userIdOf } from './people.ts';
import { ensurePeople } from './session.ts';

interface PickerProps {
  /** The people who cannot be chosen. */
  without: readonly string[];
  chosen: readonly string[];
  onChange: (ids: readonly string[]) => void;
}

/** People to choose from: the samples, and anybody whose name one types. */
export function PeoplePicker({ without, chosen, onChange }: PickerProps) {
  const [query, setQuery] = useState('');
  const wanted = query.trim().toLocaleLowerCase();
  const typed = userIdOf(query);
  const all = [...samples.map(({ id }) => id), bot.id];
  const others = chosen.filter((id) => !all.includes(id));
  const shown = [...others, ...all].filter(
    (id) => !without.includes(id) && (id.includes(wanted) || nameOf(id).toLocaleLowerCase().includes(wanted)),
  );
  const fresh = typed !== null && ![...all, ...others, ...without].includes(typed) ? typed : null;
  const toggle = (id: string): void =>
    onChange(chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id]);
  return (
    <>
      <Search label="Search people, or type a new name" value={query} onChange={setQuery} />
      <ul className="demo-people">
        {shown.map((id) => (
          <li key={id}>
            <label>
              <input type="checkbox" checked={chosen.includes(id)} onChange={() => toggle(id)} />
              <Avatar id={id} name={nameOf(id)} size={32} />
              <span>{nameOf(id)}</span>
            </label>
          </li>
        ))}
        {fresh ? (
          <li>
            <button
              type="button"
              onClick={() => {
                onChange([...chosen, fresh]);
                setQuery('');
              }}
            >
              <Icon name="plus" />
              <span>
                Add {nameOf(fresh)}, <small>who was never here</small>
              </span>
            </button>
          </li>
        ) : null}
      </ul>
    </>
  );
}

interface NewChatProps {
  onMade: (conversationId: string) => void;
  onClose: () => void;
}

/** One person is a direct chat, more are a group. Nothing else can be written to until it is made or given up. */
export function NewChat({ onMade, onClose }: NewChatProps) {
  const client = useClient();
  const { userId } = useSession();
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [name, setName] = useState('');
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState('');
  const isGroup = chosen.length > 1;
  const make = async (): Promise<string> => {
    await ensurePeople(chosen);
    const { conversations } = client;
    const groupName = name.trim() || [userId, ...chosen].map(firstName).join(', ').slice(0, 200);
    const chat = isGroup
      ? await conversations.createGroup([...chosen], { name: groupName })
      : await conversations.createDirect(chosen[0]!);
    chat.close(); // The thread opens it for itself.
    return chat.id;
  };
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    if (chosen.length === 0) return setProblem('Choose somebody.');
    setBusy(true);
    setProblem('');
    make().then(onMade, (error: unknown) => {
      setBusy(false);
      setProblem(`Not made: ${(error as Error).message}`);
    });
  };
  return (
    <Sheet title="New chat" onClose={onClose}>
      <form onSubmit={submit}>
        <PeoplePicker without={[userId]} chosen={chosen} onChange={setChosen} />
        {isGroup ? (
          <label className="demo-field">
            Name of the group
            <input value={name} maxLength={200} onChange={(event) => setName(event.target.value)} />
          </label>
        ) : null}
        <p role="alert">{problem}</p>
        <button type="submit" className="demo-button" data-kind="primary" disabled={busy}>
          {isGroup ? `Make a group of ${chosen.length + 1}` : 'Start the chat'}
        </button>
      </form>
    </Sheet>
  );
}
