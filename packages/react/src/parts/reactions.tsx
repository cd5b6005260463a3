import type { MessageItem } from '@parley/client';
import { useStrings } from '../hooks/context.ts';
import { useReactions } from '../hooks/reactions.ts';
import type { ReactionsView } from '../hooks/reactions.ts';

/** What one click offers. */
const quick = ['👍', '❤️', '😂', '🎉'];

const press =
  ({ toggle }: ReactionsView, emoji: string) =>
  (): void => {
    // What is refused is taken back by the client, and so shows.
    toggle(emoji).catch(() => undefined);
  };

/** The reactions to a message; each is a button that joins in or takes back. Nothing where there are none. */
export function ReactionBar({ item }: { item: MessageItem }) {
  const strings = useStrings();
  const reactions = useReactions(item);
  const { counts, own, can } = reactions;
  if (counts.length === 0) return null;
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
          onClick={press(reactions, emoji)}
        >
          <span aria-hidden="true">{emoji}</span> {count}
        </button>
      ))}
    </div>
  );
}

/** Buttons for the reactions that people use most; for the toolbar of a message. */
export function QuickReactions({ item }: { item: MessageItem }) {
  const strings = useStrings();
  const reactions = useReactions(item);
  if (!reactions.can) return null;
  return quick.map((emoji) => (
    <button
      key={emoji}
      type="button"
      tabIndex={-1}
      title={strings.reactWith(emoji)}
      aria-label={strings.reactWith(emoji)}
      aria-pressed={reactions.own.includes(emoji)}
      onClick={press(reactions, emoji)}
    >
      <span aria-hidden="true">{emoji}</span>
    </button>
  ));
}
