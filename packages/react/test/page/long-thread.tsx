import { memo, useEffect } from 'react';
import { createRoot } from 'react-dom/client';
import { createClient } from '@parley/client';
import { Chat, Message, ParleyProvider } from '@parley/react';
import type { MessageProps } from '@parley/react';
import '@parley/react/styles.css';
import { StoryServer } from './story-server.ts';
import type { Story } from './story-server.ts';

/** A thread of 10,000 messages, for the test that counts renders and for `npm run bench:kit`. */

const words =
  'the lamp is here but its arm wobbles a little so I would ask for one more screw of the small kind'.split(
    ' ',
  );
const people = ['tomas', 'ines', 'mei', 'jonas'];
const names = new Map([
  ['nora', 'Nora Lind'],
  ['tomas', 'Tomás Barreiro'],
  ['ines', 'Ines Rocha'],
  ['mei', 'Mei Okafor'],
  ['jonas', 'Jonas Aalto'],
]);
const start = Date.parse('2026-01-05T08:00:00Z');
const story: Story = {
  id: 'conv_long',
  type: 'group',
  name: 'Packing table',
  members: ['nora', ...people],
  length: (globalThis as unknown as { options: { length?: number } }).options.length ?? 10_000,
  line: (seq) => ({
    // Nobody writes twice in a row, so that a message stands in no group of the one before it.
    senderId: seq % 5 === 0 ? 'nora' : people[seq % people.length]!,
    text: `${seq}: ${words.slice(seq % 11, (seq % 11) + 2 + (seq % 8)).join(' ')}`,
    createdAt: new Date(start + seq * 90_000).toISOString(),
  }),
};
const server = new StoryServer('nora', names, [story]);
server.online = new Set(people);

export const page = {
  server,
  story,
  /** Texts of rows that rendered, and when the first one was in the page. */
  rendered: [] as string[],
  firstRows: 0,
  open: () => document.querySelector<HTMLElement>('.parley-conversation')!.click(),
};
const Counted = memo((props: MessageProps) => {
  page.rendered.push(props.item.text ?? '');
  useEffect(() => {
    page.firstRows ||= performance.now();
  }, []);
  return <Message {...props} />;
});
const slots = { Message: Counted };

Object.assign(globalThis, { page });
export type LongThreadPage = typeof page;
const client = createClient(server.options());
createRoot(document.getElementById('root')!).render(
  <ParleyProvider client={client} connect theme="light">
    <Chat slots={slots} />
  </ParleyProvider>,
);
