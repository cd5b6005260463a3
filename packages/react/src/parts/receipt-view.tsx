import type { ComponentPropsWithoutRef } from 'react';
import { useStrings } from '../hooks/context.ts';
import type { Receipt as ReceiptView } from '../hooks/reading.ts';
import { Path } from './icon.tsx';
import { cx } from './tools.ts';

export interface ReceiptProps extends ReceiptView, Omit<ComponentPropsWithoutRef<'span'>, 'children'> {
  /** Three points and a word, check marks, or the word alone. */
  variant?: 'points' | 'checks' | 'words';
  /** Leaves the word to screen readers, as in a row of the list. */
  quiet?: boolean;
}

const points = { failed: 0, waiting: 0, sent: 1, delivered: 2, read: 3 };
const clock = 'M12 6v6l4 2M22 12a10 10 0 1 1-20 0 10 10 0 0 1 20 0';
const one = 'M20 6 9 17l-5-5';
const two = 'M18 6 7 17l-5-5m20-2-7.5 7.5L13 16';

/** What `useReceipt` returns, and the part that shows it. */
export type Receipt = ReceiptView;
/** Where a message has come to: waiting, sent, delivered, read. In a group it says how many have read it. */
export function Receipt(props: ReceiptProps) {
  const { state, readBy, others, variant = 'points', quiet = false, className, ...rest } = props;
  const strings = useStrings();
  const filled = points[state];
  const group = state === 'read' && others > 1;
  const word = group ? strings.readBy(readBy) : strings[state];
  // Check marks speak for themselves, but do not count.
  const hidden = quiet || (variant === 'checks' && !group);
  return (
    <span
      className={cx('parley-receipt', className)}
      data-state={state}
      data-variant={variant}
      title={hidden ? word : undefined}
      {...rest}
    >
      {variant === 'points' ? (
        <span aria-hidden="true">
          {[1, 2, 3].map((point) => (
            <i key={point} data-on={point <= filled || undefined} />
          ))}
        </span>
      ) : variant === 'checks' ? (
        <Path d={filled === 0 ? clock : filled === 1 ? one : two} size={14} />
      ) : null}
      {hidden ? <span className="parley-hidden">{word}</span> : word}
    </span>
  );
}
