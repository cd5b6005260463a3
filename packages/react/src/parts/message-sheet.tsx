import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import type { MessageItem, Reaction, User } from '@parley/client';
import { useParley, useStrings } from '../hooks/context.ts';
import { useConversation } from '../hooks/open.ts';
import { useReactions } from '../hooks/reactions.ts';
import { useSlots } from '../hooks/slots.ts';
import { useStore } from '../hooks/store.ts';
import { EmojiPicker } from './emoji-picker.tsx';
import type { MessageAction } from './message-actions.tsx';
import type { MessageSlots } from './message-parts.tsx';
import { ReactionBar } from './reactions.tsx';
import { moveFocus } from './tools.ts';

interface MessageSheetProps {
  item: MessageItem;
  actions: readonly MessageAction[];
  question: string | undefined;
  slots: MessageSlots | undefined;
  /** All emoji in place of the actions. */
  picking: boolean;
  onPress: (action: MessageAction) => void;
  onMore: () => void;
  onClose: () => void;
}

/** What a long press of a message offers, at the lower edge of the screen. The browser keeps the focus inside of it. */
export function MessageSheet(props: MessageSheetProps) {
  const { item, actions, question, slots, picking, onPress, onMore, onClose } = props;
  const { Reactions = ReactionBar } = { ...useSlots<MessageSlots>(), ...slots };
  const strings = useStrings();
  const { toggle } = useReactions(item);
  const dialog = useRef<HTMLDialogElement>(null);
  /** The finger that opened the sheet lifts over it, which presses nothing. */
  const pressed = useRef(false);
  // Before the emoji take the focus. The browser gives it back when the dialog closes.
  useLayoutEffect(() => {
    const element = dialog.current!;
    element.showModal();
    return () => element.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      className="parley-sheet"
      aria-label={picking ? strings.addReaction : strings.actions}
      onPointerDown={() => (pressed.current = true)}
      onClickCapture={(event) => {
        // A click of the keyboard has no detail.
        if (!pressed.current && event.detail > 0) event.stopPropagation();
      }}
      // Keys belong to the dialog: the list behind it must not move.
      onKeyDown={(event) => {
        event.stopPropagation();
        const all = [...event.currentTarget.querySelectorAll<HTMLElement>('button')];
        if (!picking && moveFocus(event, all, false)) event.preventDefault();
      }}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === event.currentTarget) onClose();
      }}
    >
      {picking ? (
        <EmojiPicker
          onClose={onClose}
          onPick={(emoji) => {
            // What is refused is taken back by the client, and so shows.
            toggle(emoji).catch(() => undefined);
            onClose();
          }}
        />
      ) : (
        <div>
          {question === undefined ? (
            <>
              {Reactions && <Reactions item={item} offer onMore={onMore} onPress={onClose} />}
              <Reactors item={item} />
            </>
          ) : (
            <p>{question}</p>
          )}
          {actions.map((one) => (
            <button
              key={one.id}
              type="button"
              data-danger={one.danger || undefined}
              onClick={() => onPress(one)}
            >
              {one.icon}
              {one.label}
            </button>
          ))}
        </div>
      )}
    </dialog>
  );
}

const noUsers: ReadonlyMap<string, User> = new Map();

/** The users who reacted, with their emoji. Touch screens have no tooltips, so the names are listed here. */
function Reactors({ item }: { item: MessageItem }) {
  const { client, strings } = useParley();
  const { counts } = useReactions(item);
  const conversation = useConversation(item.conversationId);
  const [told, setTold] = useState<readonly Reaction[]>([]);
  useStore(client.users.store, noUsers);
  // A message names the newest few of each emoji; the service knows all.
  const partly = counts.some(({ userIds, count }) => count > userIds.length);
  useEffect(() => {
    if (!partly || !conversation) return undefined;
    let over = false;
    conversation.reactors(item.id!).then(
      ({ data }) => over || setTold(data),
      () => undefined, // The names in the message are shown, and the number of the others.
    );
    return () => void (over = true);
  }, [partly, conversation, item.id]);
  if (counts.length === 0) return null;
  return (
    <ul className="parley-reactors" aria-label={strings.reactions}>
      {counts.map(({ emoji, count, userIds }) => {
        const all = new Set([
          ...userIds,
          ...told.filter((one) => one.emoji === emoji).map((one) => one.userId),
        ]);
        const names = [...all]
          .slice(0, count)
          .map((id) => (id === client.userId ? strings.you : client.users.find(id)?.name || id));
        return (
          <li key={emoji}>
            <span>{emoji}</span> <bdi>{names.join(', ')}</bdi>
            {count > all.size ? ` +${count - all.size}` : null}
          </li>
        );
      })}
    </ul>
  );
}
