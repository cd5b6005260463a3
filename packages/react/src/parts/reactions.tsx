import type { MessageItem } from '@parley/client';
import { useStrings } from '../hooks/context.ts';
import { useReactions } from '../hooks/reactions.ts';

/** What one click offers. */
const quick = ['👍', '❤️', '😂', '🎉'];

export interface ReactionBarProps {
  item: MessageItem;
  /** Also shows what can be added with one click. */
  offer?: boolean;
}

/** The reactions to a message; each is a button that joins in or takes back. Nothing where there is none to show. */
export function ReactionBar({ item, offer = false }: ReactionBarProps) {
  const strings = useStrings();
  const { counts, own, can, toggle } = useReactions(item);
  const more = offer && can ? quick.filter((emoji) => !counts.some((c) => c.emoji === emoji)) : [];
  if (counts.length + more.length === 0) return null;
  // What is refused is taken back by the client, and so shows.
  const press = (emoji: string) => () => void toggle(emoji).catch(() => undefined);
  return (
    <div className="parley-reactions" role="group" aria-label={strings.reactions}>
      {counts.map(({ emoji, count }) => (
        <button
          key={emoji}
          type="button"
          tabIndex={-1}
          aria-pressed={own.includes(emoji)}
          aria-label={strings.reaction(emoji, count)}
          disabled={!can}
          onClick={press(emoji)}
        >
          <span aria-hidden="true">{emoji}</span> {count}
        </button>
      ))}
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
        </span>
      )}
    </div>
  );
}
