import type { MessageItem } from '@parley/client';
import { useClient } from '../hooks/context.ts';
import { useMessages } from '../hooks/messages.ts';
import { useReceipt } from '../hooks/reading.ts';
import type { WireStrings } from './strings.ts';

interface LastMessageProps {
  id: string;
  reveal: boolean;
  strings: WireStrings;
}

const maxListed = 3;
const reached = { failed: 1, waiting: 1, sent: 2, delivered: 3, read: 4 };

/** The outbox of the conversation, and the way of this user's last message. */
export function LastMessage({ id, reveal, strings }: LastMessageProps) {
  const { userId } = useClient();
  const { items } = useMessages(id);
  const waiting = items.filter(({ status }) => status === 'pending');
  const last = items.findLast(({ senderId, deletedAt }) => senderId === userId && deletedAt === null);
  if (!last) return null;
  const says = ({ text }: MessageItem): string =>
    text === null ? strings.files : reveal ? text : strings.hidden;
  return (
    <div className="parley-trail-box">
      {waiting.length > 0 ? (
        <div className="parley-outbox">
          <b>{strings.outbox(waiting.length)}</b>
          {reveal ? (
            <ol>
              {waiting.slice(0, maxListed).map((item) => (
                <li key={item.key}>{says(item)}</li>
              ))}
            </ol>
          ) : null}
        </div>
      ) : null}
      <p>
        <b>{last.seq === null ? strings.notNumbered : strings.numbered(last.seq)}</b>{' '}
        <span>{says(last)}</span>
      </p>
      <Trail item={last} strings={strings} />
    </div>
  );
}

function Trail({ item, strings }: { item: MessageItem; strings: WireStrings }) {
  const { state } = useReceipt(item.conversationId, item);
  return (
    <ol className="parley-trail" aria-label={strings.lastMessage}>
      {strings.steps.map((step, i) => (
        <li key={step} data-on={i < reached[state] || undefined}>
          {step}
          <span className="parley-hidden">{strings.reached(i < reached[state])}</span>
        </li>
      ))}
    </ol>
  );
}
