import { useRef, useState } from 'react';
import type { ReactNode } from 'react';
import type { MessageItem } from '@parley/client';
import { useParley } from '../hooks/context.ts';
import { useConversation } from '../hooks/open.ts';
import { useCanPin } from '../hooks/pins.ts';
import { useSlots } from '../hooks/slots.ts';
import { Icon, Path } from './icon.tsx';
import { MessageActions } from './message-actions.tsx';
import type { ChooseActions, MessageAction } from './message-actions.tsx';
import type { MessageSlots } from './message-parts.tsx';
import { MessageSheet } from './message-sheet.tsx';
import { ReportDialog } from './report.tsx';

/** What somebody asked for: whether to delete, the sheet of a long press, an emoji to react with, the form of a report. */
export type Asked = 'delete' | 'sheet' | 'emoji' | 'report' | null;

interface MessageToolsProps {
  item: MessageItem;
  own: boolean;
  /** The message has the pointer or the focus. */
  hot: boolean;
  asked: Asked;
  ask: (what: Asked) => void;
  onReply?: ((item: MessageItem) => void) | undefined;
  onEdit?: ((item: MessageItem) => void) | undefined;
  onDelete?: ((item: MessageItem) => void) | undefined;
  choose?: ChooseActions | undefined;
  slots?: MessageSlots | undefined;
}

const paths = {
  copy: 'M10 8h10a2 2 0 0 1 2 2v10a2 2 0 0 1-2 2H10a2 2 0 0 1-2-2V10a2 2 0 0 1 2-2M4 16a2 2 0 0 1-2-2V4a2 2 0 0 1 2-2h10a2 2 0 0 1 2 2',
  delete:
    'M10 11v6M14 11v6M19 6v14a2 2 0 0 1-2 2H7a2 2 0 0 1-2-2V6M3 6h18M8 6V4a2 2 0 0 1 2-2h4a2 2 0 0 1 2 2v2',
  report:
    'M4 22V4a1 1 0 0 1 .4-.8A6 6 0 0 1 8 2c3 0 5 2 7.33 2q2 0 3.07-.8A1 1 0 0 1 20 4v10a1 1 0 0 1-.4.8A6 6 0 0 1 16 16c-3 0-5-2-8-2a6 6 0 0 0-4 1.53',
};

const icon = (id: keyof typeof paths | 'reply' | 'edit' | 'pin'): ReactNode =>
  id in paths ? (
    <Path d={paths[id as keyof typeof paths]} size={16} />
  ) : (
    <Icon name={id as 'reply'} size={16} />
  );

/** What one can do with a message: in a toolbar, in a sheet, and what both ask. It loads after the messages. */
export default function MessageTools(props: MessageToolsProps) {
  const { item, own, hot, asked, ask, onReply, onEdit, onDelete, choose, slots } = props;
  const { Actions = MessageActions } = { ...useSlots<MessageSlots>(), ...slots };
  const { client, strings, announcer } = useParley();
  const conversation = useConversation(item.conversationId);
  /** The sheet asks whether to delete. */
  const [doubt, setDoubt] = useState(false);
  const stays = useRef(false);
  const sent = item.status === 'sent' && item.id !== null;
  const canPin = useCanPin() && sent;
  const canChange = own && sent;
  const close = (): void => {
    setDoubt(false);
    ask(null);
  };
  const remove = (): void => {
    if (onDelete) return onDelete(item);
    stays.current = true;
    if (asked === 'sheet') setDoubt(true);
    else ask('delete');
  };

  const answers = (): MessageAction[] => {
    const erase = (): void =>
      void conversation?.delete(item.id!).catch(() => {
        close();
        announcer.say(strings.notDeleted);
      });
    return [
      { id: 'delete', label: strings.delete, icon: icon('delete'), danger: true, onPress: erase },
      { id: 'keep', label: strings.keep, icon: <Icon name="close" size={16} />, onPress: close },
    ];
  };
  const usual = (): MessageAction[] => {
    const all: MessageAction[] = [];
    const add = (
      id: 'reply' | 'edit' | 'pin' | 'report' | 'delete',
      onPress: () => void,
      label = strings[id],
    ): unknown => all.push({ id, label, icon: icon(id), onPress });
    if (onReply && item.id !== null) add('reply', () => onReply(item));
    if (onEdit && canChange && item.text !== null && !item.poll) add('edit', () => onEdit(item));
    const { text } = item;
    // Who holds a message for its buttons cannot hold it to choose its words. Pages without TLS may not copy.
    if (asked === 'sheet' && text && 'clipboard' in navigator)
      all.push({
        id: 'copy',
        label: strings.copy,
        icon: icon('copy'),
        onPress: () => void navigator.clipboard.writeText(text).catch(() => undefined),
      });
    if (canPin) {
      const change = item.pinned ? conversation?.unpin : conversation?.pin;
      add(
        'pin',
        () => void change?.(item.id!).catch(() => announcer.say(strings.notPinned)),
        item.pinned ? strings.unpin : strings.pin,
      );
    }
    if (!own && item.id !== null && client.features?.includes('reports'))
      add('report', () => {
        stays.current = true;
        ask('report');
      });
    if (canChange) add('delete', remove);
    return all;
  };

  if (item.deletedAt !== null && asked !== 'report') return null;
  const asks = asked === 'delete' || doubt;
  const question = asks ? strings.deleteAsk : undefined;
  const actions = asks ? answers() : choose ? choose(usual(), item) : usual();
  const press = (one: MessageAction): void => {
    stays.current = false;
    one.onPress();
    if (!stays.current) close();
  };
  if (asked === 'sheet' || asked === 'emoji')
    return (
      <MessageSheet
        item={item}
        actions={actions}
        question={question}
        slots={slots}
        picking={asked === 'emoji'}
        onPress={press}
        onMore={() => ask('emoji')}
        onClose={close}
      />
    );
  return (
    <>
      {Actions && (hot || asks) && actions.length > 0 ? (
        <Actions item={item} actions={actions} question={question} />
      ) : null}
      {asked === 'report' ? <ReportDialog target={{ messageId: item.id! }} onClose={close} /> : null}
    </>
  );
}
