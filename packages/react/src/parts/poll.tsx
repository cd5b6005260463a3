import { useRef, useState } from 'react';
import type { MessageItem } from '@parley/client';
import { useParley } from '../hooks/context.ts';
import { Icon } from './icon.tsx';
import { later } from './later.ts';

const Card = later(
  () => import('./poll-card.tsx'),
  () => <fieldset className="parley-poll" />,
);
const PollForm = later(() => import('./poll-form.tsx'));

/** The poll of a message, which loads with the first one. Nothing where there is none. */
export const PollCard = ({ item }: { item: MessageItem }) => (item.poll ? <Card item={item} /> : null);

/** Asks for a question and its options, and sends them: for `tools` of the composer. */
export function PollButton({ conversationId }: { conversationId: string }) {
  const { client, strings } = useParley();
  const button = useRef<HTMLButtonElement>(null);
  const [open, setOpen] = useState(false);
  if (client.features?.includes('polls') === false) return null;
  const close = (): void => {
    setOpen(false);
    button.current?.focus();
  };
  return (
    <span className="parley-poll-place">
      <button
        ref={button}
        type="button"
        className="parley-button"
        aria-label={strings.newPoll}
        title={strings.newPoll}
        aria-haspopup="dialog"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        <Icon name="poll" />
      </button>
      {open ? (
        <PollForm
          onClose={close}
          onAsk={(poll) => {
            client.conversations.send(conversationId, { poll });
            close();
          }}
        />
      ) : null}
    </span>
  );
}
