import { forwardRef } from 'react';
import type { ComponentPropsWithoutRef } from 'react';
import { useTyping } from '../hooks/connection.ts';
import { useClient, useStrings } from '../hooks/context.ts';
import { useStore } from '../hooks/store.ts';
import { cx } from './tools.ts';

export interface TypingIndicatorProps extends ComponentPropsWithoutRef<'div'> {
  conversationId: string;
  /** So many people are named; more are "several". */
  max?: number;
}

const noUsers: ReadonlyMap<string, { name: string | null }> = new Map();

/** The typing users. Its row keeps its height, so that the layout does not shift. */
export const TypingIndicator = forwardRef<HTMLDivElement, TypingIndicatorProps>(function TypingIndicator(
  { conversationId, max, className, ...rest },
  ref,
) {
  const { users, userId: me } = useClient();
  const strings = useStrings();
  const { userIds } = useTyping(conversationId);
  useStore(users.store, noUsers);
  const names = userIds.filter((id) => id !== me).map((id) => users.find(id)?.name || id);
  return (
    <div ref={ref} className={cx('parley-typing', className)} {...rest}>
      {names.length > 0 ? (
        <>
          <span className="parley-dots" aria-hidden="true">
            <i />
            <i />
            <i />
          </span>
          {strings.typing(names, max)}
        </>
      ) : null}
    </div>
  );
});
