import { useEffect, useId, useMemo, useState } from 'react';
import type { KeyboardEvent, MutableRefObject, ReactNode, RefObject } from 'react';
import type { Mention } from '@parley/client';
import type { ComposerView } from '../hooks/composer.ts';
import { useParley } from '../hooks/context.ts';
import { mentionQuery, useSuggestions, wordBegun } from '../hooks/suggestions.ts';
import { UserAvatar } from './avatar.tsx';

/** Something to put into the text in place of what was typed. */
export interface Offer {
  /** What then stands in the text, with the character: `/away`. */
  text: string;
  /** What the list shows; the text unless given. */
  label?: ReactNode;
  /** The mentions of the text. */
  mention?: Mention;
}

/** A character that begins something else than a mention: `/` a command, `#` a channel. */
export interface Trigger {
  character: string;
  /** The character counts only as the first of the whole text, as that of a command does. */
  first?: boolean;
  /** The name of the list, for screen readers. */
  label: string;
  /** What fits what was typed after the character, the best first. Keep the function the same between renders. */
  find(query: string): readonly Offer[] | Promise<readonly Offer[]>;
}

export type SuggestKeys = (event: KeyboardEvent<HTMLTextAreaElement>) => boolean;

export interface SuggestionsProps {
  conversationId: string;
  composer: ComposerView;
  field: RefObject<HTMLTextAreaElement | null>;
  caret: number;
  setCaret: (at: number) => void;
  triggers: readonly Trigger[];
  /** Is given what looks at the keys of the field first; true if a key was for the list. */
  keys: MutableRefObject<SuggestKeys | null>;
}

const steps: Partial<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };
const none: readonly Offer[] = [];
const mostShown = 20;

/** The trigger whose word the caret stands in, and that word. */
function begun(
  triggers: readonly Trigger[],
  text: string,
  at: number,
): { by: Trigger; query: string } | null {
  for (const by of triggers) {
    const query = wordBegun(text, at, by.character);
    if (query !== null && (!by.first || at === query.length + by.character.length)) return { by, query };
  }
  return null;
}

/** What a trigger offers: null while it is looked for. */
function useOffers(by: Trigger | undefined, query: string): readonly Offer[] | null {
  const [found, setFound] = useState<{ by: Trigger; query: string; all: readonly Offer[] } | null>(null);
  useEffect(() => {
    if (!by) return undefined;
    let over = false;
    const put = (all: readonly Offer[]): void => {
      if (!over) setFound({ by, query, all: all.slice(0, mostShown) });
    };
    // What cannot be asked has nothing to offer.
    Promise.resolve(by.find(query)).then(put, () => put(none));
    return () => void (over = true);
  }, [by, query]);
  return found && found.by === by && found.query === query ? found.all : null;
}

/** The suggestions after `@` or another trigger: a list over the field, which keeps the focus. */
export default function Suggestions(props: SuggestionsProps) {
  const { conversationId, composer, field, caret, setCaret, triggers, keys } = props;
  const { text, setText, mention } = composer;
  const { strings } = useParley();
  const id = useId();
  const [chosen, setChosen] = useState({ text: '', index: 0 });
  /** Where the word begins for which the list was closed with Escape. */
  const [closed, setClosed] = useState(-1);
  const at = Math.min(caret, text.length);
  const before = text.slice(0, at);
  const other = begun(triggers, text, at);
  const mentioned = other ? null : mentionQuery(text, at);
  const start = other
    ? at - other.query.length - other.by.character.length
    : mentioned === null
      ? -1
      : at - mentioned.length - 1;
  const open = start >= 0 && start !== closed;
  useEffect(() => {
    if (start < 0) setClosed(-1);
  }, [start]);
  const query = open ? mentioned : null;
  const people = useSuggestions(conversationId, query);
  const offered = useOffers(open ? other?.by : undefined, other?.query ?? '');
  const list = useMemo(
    () =>
      offered ??
      people.map((one): Offer => ({
        text: `@${one.name}`,
        mention: one.mention,
        label: (
          <>
            {one.mention.userId === undefined ? null : <UserAvatar userId={one.mention.userId} size={24} />}
            <bdi>{one.name}</bdi>
          </>
        ),
      })),
    [offered, people],
  );
  const active = chosen.text === before ? Math.min(chosen.index, list.length - 1) : 0;
  const point = (index: number): void => setChosen({ text: before, index });
  const shown = open && (list.length > 0 || other !== null);

  const pick = (one: Offer): void => {
    setText(`${text.slice(0, start)}${one.text} ${text.slice(at)}`);
    if (one.mention) mention(one.mention, one.text);
    const after = start + one.text.length + 1;
    setCaret(after);
    field.current?.focus();
    requestAnimationFrame(() => field.current?.setSelectionRange(after, after));
  };
  useEffect(() => {
    keys.current = (event) => {
      if (!shown) return false;
      const step = steps[event.key];
      const one = list[active];
      if (step !== undefined && one) point((active + step + list.length) % list.length);
      else if (event.key === 'Escape') setClosed(start);
      else if ((event.key === 'Enter' || event.key === 'Tab') && !event.shiftKey && one) pick(one);
      else return false;
      event.preventDefault();
      event.stopPropagation();
      return true;
    };
    return () => void (keys.current = null);
  });
  useEffect(() => {
    const element = field.current;
    if (!element || !shown || list.length === 0) return undefined;
    // A field of several lines may be no combobox.
    const said = {
      'aria-autocomplete': 'list',
      'aria-haspopup': 'listbox',
      'aria-controls': id,
      'aria-activedescendant': `${id}-${active}`,
    };
    for (const [name, value] of Object.entries(said)) element.setAttribute(name, value);
    document.getElementById(said['aria-activedescendant'])?.scrollIntoView({ block: 'nearest' });
    return () => Object.keys(said).forEach((name) => element.removeAttribute(name));
  }, [field, id, active, list, shown]);

  if (!shown) return null;
  if (list.length === 0)
    return (
      <p className="parley-suggestions" role="status">
        {offered ? strings.noMatch : strings.loading}
      </p>
    );
  return (
    <ul className="parley-suggestions" id={id} role="listbox" aria-label={other?.by.label ?? strings.people}>
      {list.map((one, i) => (
        <li
          key={i}
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
          {one.label ?? <bdi>{one.text}</bdi>}
        </li>
      ))}
    </ul>
  );
}
