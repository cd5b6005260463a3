import { useId, useState } from 'react';
import type { KeyboardEvent, RefObject } from 'react';
import type { ComposerView } from '../hooks/composer.ts';
import { useParley } from '../hooks/context.ts';
import { mentionQuery, useSuggestions } from '../hooks/suggestions.ts';
import type { Suggestion } from '../hooks/suggestions.ts';
import { UserAvatar } from './avatar.tsx';

/** Whom one may mean after typing `@`: a list over the field, which keeps the focus. */

interface Suggesting {
  id: string;
  list: readonly Suggestion[];
  active: number;
  pick(one: Suggestion): void;
  point(index: number): void;
  /** True if the key was for the list. */
  onKeyDown(event: KeyboardEvent<HTMLTextAreaElement>): boolean;
  /** What the field says of the list. */
  field: object;
}

const steps: Partial<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };

export function useSuggesting(
  conversationId: string,
  { text, setText, mention }: ComposerView,
  field: RefObject<HTMLTextAreaElement | null>,
): Suggesting {
  const id = useId();
  const [caret, setCaret] = useState(0);
  const [chosen, setChosen] = useState(0);
  /** The query that was closed with Escape. */
  const [closed, setClosed] = useState<string | null>(null);
  const at = Math.min(caret, text.length);
  const query = mentionQuery(text, at);
  const list = useSuggestions(conversationId, query === closed ? null : query);
  const active = Math.min(chosen, list.length - 1);

  const pick = ({ mention: one, name }: Suggestion): void => {
    const shown = `@${name}`;
    const start = at - query!.length - 1;
    setText(`${text.slice(0, start)}${shown} ${text.slice(at)}`);
    mention(one, shown);
    const after = start + shown.length + 1;
    setCaret(after);
    field.current?.focus();
    requestAnimationFrame(() => field.current?.setSelectionRange(after, after));
  };
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>): boolean => {
    if (list.length === 0) return false;
    const step = steps[event.key];
    if (step !== undefined) setChosen((active + step + list.length) % list.length);
    else if (event.key === 'Escape') setClosed(query);
    else if ((event.key === 'Enter' || event.key === 'Tab') && !event.shiftKey) pick(list[active]!);
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
  return {
    id,
    list,
    active,
    pick,
    point: setChosen,
    onKeyDown,
    field: {
      onSelect: () => {
        const place = field.current?.selectionStart ?? 0;
        if (place !== caret) {
          setCaret(place);
          setChosen(0);
        }
        if (mentionQuery(text, place) === null) setClosed(null);
      },
      ...(list.length === 0
        ? {}
        : {
            // A field of several lines may be no combobox.
            'aria-autocomplete': 'list',
            'aria-haspopup': 'listbox',
            'aria-controls': id,
            'aria-activedescendant': `${id}-${active}`,
          }),
    },
  };
}

export function Suggestions({ of: { id, list, active, pick, point } }: { of: Suggesting }) {
  const { strings } = useParley();
  if (list.length === 0) return null;
  return (
    <ul className="parley-suggestions" id={id} role="listbox" aria-label={strings.people}>
      {list.map((one, i) => (
        <li
          key={one.mention.userId ?? one.mention.type}
          id={`${id}-${i}`}
          role="option"
          aria-selected={i === active}
          onPointerMove={() => point(i)}
          // Before the field loses the focus.
          onMouseDown={(event) => {
            event.preventDefault();
            pick(one);
          }}
        >
          {one.mention.userId === undefined ? null : <UserAvatar userId={one.mention.userId} size={24} />}
          <bdi>{one.name}</bdi>
        </li>
      ))}
    </ul>
  );
}
