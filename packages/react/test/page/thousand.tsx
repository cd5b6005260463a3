import { useEffect } from 'react';
import { createRoot } from 'react-dom/client';
import { createClient } from '@parley/client';
import { Message, MessageBubble, ParleyProvider, useConversation, useMessages } from '@parley/react';
import type { MessageBubbleProps, Slots } from '@parley/react';
import '@parley/react/styles.css';
import { StoryServer } from './story-server.ts';

/** 1,000 messages in the page at once, which a list of the kit never has, to count which of them render. */

const id = 'conv_long';
const start = Date.parse('2026-01-05T08:00:00Z');
const names = new Map([
  ['nora', 'Nora Lind'],
  ['ines', 'Ines Rocha'],
]);
const server = new StoryServer('nora', names, [
  {
    id,
    type: 'group',
    name: 'Packing table',
    members: [...names.keys()],
    length: 1_000,
    line: (seq) => ({
      senderId: 'ines',
      text: `Message ${seq}`,
      createdAt: new Date(start + seq * 90_000).toISOString(),
      replyTo: seq === 900 ? `msg_${id}_500` : null,
    }),
  },
]);
server.features = ['reactions'];
const rendered: string[] = [];
export const page = { server, rendered };
Object.assign(globalThis, { page });
export type ThousandPage = typeof page;

/** A bubble renders whenever its message does. */
const slots: Slots = {
  Bubble: (props: MessageBubbleProps) => {
    rendered.push(props.item.text ?? '');
    return <MessageBubble {...props} />;
  },
};

function Thousand() {
  const { items, status } = useMessages(id);
  const conversation = useConversation(id);
  useEffect(() => {
    const loadAll = async (): Promise<void> => {
      while (conversation?.messages.get().hasOlder) await conversation.loadOlder();
    };
    if (status === 'ready') void loadAll();
  }, [conversation, status]);
  return (
    <ol>
      {items.map((item) => (
        <Message key={item.key} item={item} own={false} first last />
      ))}
    </ol>
  );
}

const client = createClient(server.options());
createRoot(document.getElementById('root')!).render(
  <ParleyProvider client={client} connect theme="light" slots={slots}>
    <Thousand />
  </ParleyProvider>,
);
