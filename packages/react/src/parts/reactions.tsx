import { useState } from 'react';
import type { MessageItem, ReactionCount, User } from '@parley/client';
import { useParley } from '../hooks/context.ts';
import { useReactions } from '../hooks/reactions.ts';
import { nothing, useStore } from '../hooks/store.ts';
import { Icon } from './icon.tsx';

const usual = ['👍', '🎉', '❤️', '😂', '👀'];

export interface ReactionBarProps {
  item: MessageItem;
  /** Also shows the emoji that need one click, and the names of users when the pointer is over a reaction. */
  offer?: boolean;
  /** What one click offers. */
  quick?: readonly string[];
  /** So many emoji are shown; the others follow after "+4". */
  max?: number;
  /** Asks for any other emoji. Without it there is no button for that. */
  onMore?: (() => void) | undefined;
  /** A reaction was chosen or taken back. */
  onPress?: (() => void) | undefined;
}

const noUsers: ReadonlyMap<string, User> = new Map();
const nobody = { get: () => noUsers, subscribe: nothing };

/** The reactions to a message; each is a button that joins in or takes back. Nothing where there is none to show. */
export function ReactionBar(props: ReactionBarProps) {
  const { item, offer = false, quick = usual, max = 8, onMore, onPress } = props;
  const { client, strings } = useParley();
  const { counts, own, can, toggle } = useReactions(item);
  const [all, setAll] = useState(false);
  useStore(offer ? client.users.store : nobody, noUsers);
  const more = offer && can ? quick.filter((emoji) => !counts.some((c) => c.emoji === emoji)) : [];
  if (counts.length + more.length === 0) return null;
  const shown = all ? counts : counts.slice(0, max);
  const left = counts.length - shown.length;
  const press = (emoji: string) => () => {
    // What is refused is taken back by the client, and so shows.
    toggle(emoji).catch(() => undefined);
    onPress?.();
  };
  const names = ({ userIds, count }: ReactionCount): string =>
    [
      ...userIds.map((id) => (id === client.userId ? strings.you : client.users.find(id)?.name || id)),
      ...(count > userIds.length ? [`+${count - userIds.length}`] : []),
    ].join(', ');
  return (
    <div className="parley-reactions" role="group" aria-label={strings.reactions}>
      {shown.map((one) => (
        <button
          key={one.emoji}
          type="button"
          tabIndex={-1}
          aria-pressed={own.includes(one.emoji)}
          aria-label={strings.reaction(one.emoji, one.count) + (offer ? `, ${names(one)}` : '')}
          title={offer ? names(one) : undefined}
          disabled={!can}
          onClick={press(one.emoji)}
        >
          <span aria-hidden="true">{one.emoji}</span> {one.count}
        </button>
      ))}
      {left > 0 ? (
        <button type="button" tabIndex={-1} onClick={() => setAll(true)}>
          +{left}
        </button>
      ) : null}
      {more.length === 0 ? null : (
        <span className="parley-offer">
          {more.map((emoji) => (
            <button
              key={emoji}
              type="button"
              tabIndex={-1}
              title={strings.reactWith(emoji)}
              aria-label={strings.reactWith(emoji)}
              onClick={press(emoji)}
            >
              <span aria-hidden="true">{emoji}</span>
            </button>
          ))}
          {onMore ? (
            <button
              type="button"
              className="parley-react"
              tabIndex={-1}
              title={strings.addReaction}
              aria-label={strings.addReaction}
              onClick={onMore}
            >
              <Icon name="emoji" size={14} />
            </button>
          ) : null}
        </span>
      )}
    </div>
  );
}
