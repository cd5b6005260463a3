import { useEffect, useRef } from 'react';
import type { KeyboardEvent } from 'react';
import type { MessageItem } from '@parley/client';
import { useParley } from '../hooks/context.ts';
import { useName } from '../hooks/people.ts';
import { usePins } from '../hooks/pins.ts';
import { Icon } from './icon.tsx';
import { moveFocus } from './tools.ts';

export interface PinListProps {
  conversationId: string;
  /** Goes to the message. */
  onGo: (item: MessageItem) => void;
  onClose: () => void;
}

/** The pinned messages of a conversation, the newest pin first. */
export default function PinList({ conversationId, onGo, onClose }: PinListProps) {
  const { strings, announcer } = useParley();
  const { items, status, unpin } = usePins(conversationId);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const opener = document.activeElement as HTMLElement | null;
    box.current?.focus();
    return () => opener?.focus();
  }, []);
  const onKeyDown = (event: KeyboardEvent): void => {
    const rows = [...(box.current?.querySelectorAll<HTMLElement>('.parley-pin') ?? [])];
    if (event.key === 'Escape') onClose();
    else if (!moveFocus(event, rows, false)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      ref={box}
      className="parley-pins"
      role="dialog"
      aria-label={strings.pins}
      tabIndex={-1}
      onKeyDown={onKeyDown}
    >
      <header>
        <b>{strings.pins}</b>
        <button type="button" className="parley-button" aria-label={strings.close} onClick={onClose}>
          <Icon name="close" size={16} />
        </button>
      </header>
      {items.length === 0 ? (
        <p role="status">{status === 'ready' ? strings.noPins : strings.loading}</p>
      ) : (
        <ul>
          {items.map((item) => (
            <Pin
              key={item.id}
              item={item}
              onGo={() => onGo(item)}
              onUnpin={() => void unpin(item.id!).catch(() => announcer.say(strings.notPinned))}
            />
          ))}
        </ul>
      )}
    </div>
  );
}

function Pin({ item, onGo, onUnpin }: { item: MessageItem; onGo: () => void; onUnpin: () => void }) {
  const { strings, client } = useParley();
  const name = useName(item.senderId);
  const author = item.senderId !== null && item.senderId === client.userId ? strings.you : name;
  const text = item.text || item.attachments.map((file) => file.name).join(', ') || strings.photo;
  return (
    <li>
      <button type="button" className="parley-pin" onClick={onGo}>
        <b>
          <bdi>{author}</bdi>
        </b>
        <span dir="auto">{text}</span>
        <span className="parley-hidden">{strings.goToMessage}</span>
      </button>
      <button
        type="button"
        className="parley-button"
        aria-label={strings.unpin}
        title={strings.unpin}
        onClick={onUnpin}
      >
        <Icon name="close" size={14} />
      </button>
    </li>
  );
}
