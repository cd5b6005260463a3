import type { MessageItem } from '@parley/client';
import { useStrings } from '../hooks/context.ts';
import { useReceipt } from '../hooks/reading.ts';

const points = { failed: 0, waiting: 0, sent: 1, delivered: 2, read: 3 };

/** Three points and a word: waiting, sent, delivered, read. */
export function Receipt({ item }: { item: MessageItem }) {
  const strings = useStrings();
  const { state, readBy, others } = useReceipt(item.conversationId, item);
  const filled = points[state];
  return (
    <span className="parley-receipt" data-state={state}>
      <span aria-hidden="true">
        {[1, 2, 3].map((point) => (
          <i key={point} data-on={point <= filled || undefined} />
        ))}
      </span>
      {state === 'read' && others > 1 ? strings.readBy(readBy) : strings[state]}
    </span>
  );
}
