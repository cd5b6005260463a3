import { forwardRef, useState } from 'react';
import type { ComponentPropsWithoutRef, ReactNode } from 'react';
import { ConversationList } from './conversation-list.tsx';
import type { ConversationListProps } from './conversation-list.tsx';
import { Thread } from './thread.tsx';
import type { ThreadProps, ThreadSlots } from './thread.tsx';
import { cx, moveRegion, useFrame } from './tools.ts';

export interface ChatProps extends Omit<ComponentPropsWithoutRef<'div'>, 'onSelect'> {
  /** The chosen conversation, if the application keeps it, for instance in the address. */
  selectedId?: string | null;
  onSelect?: (id: string | null) => void;
  list?: Pick<ConversationListProps, 'actions' | 'filter' | 'href' | 'renderEmpty' | 'sections' | 'sort'>;
  slots?: ThreadSlots;
  /** Buttons in the head of a thread. */
  threadActions?: (conversationId: string) => ReactNode;
  /** More for the thread: buttons of messages, attachments, days, receipts, why nothing can be written. */
  thread?: Pick<
    ThreadProps,
    'messageActions' | 'renderAttachment' | 'renderDay' | 'renderSystem' | 'receipts' | 'readOnly'
  >;
  /** What stands where no conversation is chosen. */
  empty?: ReactNode;
  /** A column after the thread. */
  aside?: ReactNode;
}

/** The list beside a conversation; on a narrow screen one of the two. */
export const Chat = forwardRef<HTMLDivElement, ChatProps>(function Chat(props, ref) {
  const { selectedId, onSelect, list, slots, threadActions, thread, empty, aside, className, ...rest } =
    props;
  const [own, setOwn] = useState<string | null>(null);
  const chosen = selectedId === undefined ? own : selectedId;
  const choose = (id: string | null): void => {
    setOwn(id);
    onSelect?.(id);
  };
  return (
    <div
      ref={ref}
      className={cx('parley-chat', className)}
      data-view={chosen === null ? 'list' : 'thread'}
      {...useFrame()}
      {...rest}
      onKeyDown={(event) => {
        rest.onKeyDown?.(event);
        const regions = event.currentTarget.querySelectorAll<HTMLElement>(
          ':scope > nav, :scope > main, :scope > aside',
        );
        if (!event.defaultPrevented && moveRegion(event, [...regions])) event.preventDefault();
      }}
    >
      <ConversationList selectedId={chosen} onSelect={choose} {...list} />
      <main>
        {chosen === null ? (
          (empty ?? null)
        ) : (
          <Thread
            conversationId={chosen}
            onBack={() => choose(null)}
            actions={threadActions?.(chosen)}
            slots={slots}
            {...thread}
          />
        )}
      </main>
      {aside ? <aside>{aside}</aside> : null}
    </div>
  );
});
