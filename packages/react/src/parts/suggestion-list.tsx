import type { KeyboardEvent } from 'react';
import { useParley } from '../hooks/context.ts';
import type { Suggestion } from '../hooks/suggestions.ts';
import { UserAvatar } from './avatar.tsx';

export interface Suggesting {
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

/** Whom one may mean, over the field that keeps the focus. */
export default function SuggestionList({ of: { id, list, active, pick, point } }: { of: Suggesting }) {
  const { strings } = useParley();
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
