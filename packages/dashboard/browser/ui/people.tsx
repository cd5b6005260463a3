import type { CSSProperties, ReactNode } from 'react';
import { useCall } from '../api/hooks.ts';
import { useNames } from '../api/names.ts';
import { once } from './once.ts';

/** People as they are shown everywhere: their letters on their own colour, and their name. */

/** The same person has the same colour on every page. */
function hueOf(id: string): number {
  let hash = 0;
  for (const letter of id) hash = (hash * 31 + letter.codePointAt(0)!) % 360_007;
  return hash % 360;
}

function lettersOf(name: string): string {
  const words = name.split(/[\s@._-]+/u).filter((word) => /^[\p{L}\p{N}]/u.test(word));
  const [first = '·', last] = [words[0], words.length > 1 ? words.at(-1) : undefined];
  return ([...first][0]! + (last === undefined ? '' : [...last][0]!)).toUpperCase();
}

export const Avatar = ({ id, name, small }: { id: string; name: string; small?: boolean }): ReactNode => (
  <span
    className={small ? 'avatar avatar-small' : 'avatar'}
    style={{ '--hue': hueOf(id) } as CSSProperties}
    aria-hidden
  >
    {lettersOf(name)}
  </span>
);

export const Person = ({ id, name }: { id: string; name?: string | null | undefined }): ReactNode => (
  <span className="person">
    <Avatar id={id} name={name ?? id} small />
    <span dir="auto">{name ?? id}</span>
  </span>
);

const list = once(() => new Intl.ListFormat('en-GB', { type: 'conjunction' }));
const named = 3;

/** "Alice and Bob", "Alice, Bob, Carla and 4 others". */
export function namesOf(names: readonly string[], total = names.length): string {
  if (total <= named) return list().format(names);
  const rest = total - named;
  return list().format([...names.slice(0, named), rest === 1 ? '1 other' : `${rest} others`]);
}

/** A conversation by its own name, or by its people's; undefined while it is not known, and where it is not to be had. */
export function useConversationName(conversationId: string | null): string | undefined {
  const input = { conversationId: conversationId ?? '' };
  const { data } = useCall('conversations.get', input, { enabled: conversationId !== null });
  const shown = data?.members.slice(0, named).map(({ userId }) => userId) ?? [];
  const nameOf = useNames(shown);
  return data && (data.name ?? namesOf(shown.map(nameOf), data.members.length));
}
