import { createRoot } from 'react-dom/client';
import { createClient } from '@parley/client';
import {
  Avatar,
  Chat,
  Composer,
  ConnectionBanner,
  Message,
  MessageActions,
  MessageBubble,
  MessageMeta,
  ParleyProvider,
  ReactionBar,
  Receipt,
  TypingIndicator,
} from '@parley/react';
import type {
  ChatProps,
  ConversationListProps,
  ParleyProviderProps,
  Slots,
  ThreadSlots,
  Trigger,
} from '@parley/react';
import { createWire, WirePanel } from '@parley/react/devtools';
import '@fontsource-variable/geist';
import '@parley/react/styles.css';
import '@parley/react/devtools.css';
import { StoryServer } from './story-server.ts';
import type { Line, Story } from './story-server.ts';

/** The chat of the design's pictures: always the same people, words and times. */

const day = '2026-11-18T';
const at = (time: string): string => `${day}${time}:00.000Z`;
const lamp = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" width="280" height="168"><rect width="280" height="168" fill="#dfe6dd"/><rect y="134" width="280" height="34" fill="#c98a5a"/><rect x="120" y="24" width="70" height="50" fill="#0f6b4f" transform="rotate(-18 155 49)"/><path d="M138 72l-34 40 14 22" stroke="#5a3a24" stroke-width="6" fill="none"/></svg>',
)}`;
const picture = (id: string, name: string) => ({
  id,
  name,
  size: 84_000,
  mimeType: 'image/png',
  width: 280,
  height: 168,
});
const pdf = { id: 'att_pdf', name: 'elbow-joint.pdf', size: 84_000, mimeType: 'application/pdf' };
const lines: Line[] = [
  {
    senderId: 'tomas',
    text: 'The lamp is here, but the arm wobbles. Is a screw missing?',
    createdAt: at('09:38'),
    attachments: [picture('att_lamp', 'lamp.png')],
  },
  {
    senderId: 'nora',
    text: 'Sorry about that, Tomás. Easy to fix: it is the M4 at the elbow.',
    createdAt: at('09:41'),
    attachments: [pdf],
  },
  {
    senderId: 'tomas',
    text: 'Found it. Is this the right one? https://lumen.shop/parts/m4-kit',
    createdAt: at('09:45'),
    replyTo: 'msg_conv_tomas_2',
    attachments: [picture('att_kit', 'm4-kit.png')],
  },
  { senderId: 'tomas', text: 'It says brass.', createdAt: at('09:45') },
  {
    senderId: 'nora',
    text: 'That’s the one. I put it in the post today, no charge.',
    createdAt: at('09:46'),
  },
];
const one = (
  id: string,
  senderId: string,
  text: string,
  createdAt: string,
  more: Partial<Story> = {},
): Story => ({
  id,
  type: 'direct',
  name: null,
  members: ['nora', id.slice(5)],
  length: 1,
  line: () => ({ senderId, text, createdAt }),
  ...more,
});
const stories: Story[] = [
  {
    id: 'conv_tomas',
    type: 'direct',
    name: null,
    members: ['nora', 'tomas'],
    length: lines.length,
    line: (seq) => lines[seq - 1]!,
    unread: 3,
    read: 2,
  },
  one('conv_packing', 'ines', 'Two crates left', at('09:44'), {
    type: 'group',
    name: 'Packing table',
    members: ['nora', 'ines', 'sami'],
    unread: 3,
  }),
  one('conv_mei', 'mei', 'Can I still change the engraving?', at('09:31'), { unread: 1 }),
  one('conv_jonas', 'nora', 'Refund is on its way, 3 days', at('09:12')),
  one('conv_support', 'ada', 'Who takes the Saturday shift?', at('08:58'), {
    type: 'group',
    name: 'Support team',
    members: ['nora', 'ada'],
    unread: 120,
    muted: true,
  }),
  one('conv_rosa', 'rosa', 'The lamp works again. Magic.', '2026-11-16T10:00:00.000Z'),
];
const names = new Map(
  Object.entries({
    nora: 'Nora Lind',
    tomas: 'Tomás Barreiro',
    ines: 'Ines Rocha',
    sami: 'Sami Koskinen',
    mei: 'Mei Okafor',
    jonas: 'Jonas Aalto',
    ada: 'Ada Nwosu',
    rosa: 'Rosa Vidal',
  }),
);
const server = new StoryServer('nora', names, stories);
server.online = new Set(['tomas', 'mei']);
server.files = new Map([
  ['att_lamp', lamp],
  ['att_kit', lamp],
]);
Object.assign(globalThis, { story: server });
const client = createClient(server.options());
const wire = createWire({ now: () => Date.parse(at('09:50')) });
server.watch = wire.note;
const given = (globalThis as unknown as { options: Options }).options;
interface Options extends Pick<ParleyProviderProps, 'theme' | 'dir'> {
  /** Parts of the page's own, each around the usual one. */
  slots?: boolean;
  /** Parts of messages of the page's own, in the thread alone, and a receipt below each own message. */
  parts?: boolean;
  /** Parts with other properties than usual, and days and system messages of the page's own. */
  tuned?: boolean;
  /** Sections in the list, rows in place of bubbles, a banner and triggers of the page's own. */
  laid?: boolean;
  /** So many more conversations. */
  more?: number;
  /** Before the page connects: first pages are refused with this code. */
  failingFirst?: string;
  /** Before the page connects: the service refuses its sockets with this code. */
  refused?: number;
  /** Shows the frames beside the chat, or what they say too. */
  wire?: 'shown' | 'revealed';
  /** What the service has on. */
  features?: string[];
}
const slots: Slots = {
  Avatar: (props) => <Avatar {...props} data-mine="" />,
  Receipt: (props) => <Receipt {...props} variant="checks" />,
  Message: (props) => <Message {...props} data-mine="" />,
  Typing: null,
};
const parts: ThreadSlots = {
  Author: null,
  Bubble: (props) => (
    <MessageBubble {...props} data-mine="">
      {props.item.text?.toUpperCase() ?? props.children}
    </MessageBubble>
  ),
  Meta: (props) => (
    <MessageMeta {...props}>
      <i data-mine="">{props.item.seq}</i>
    </MessageMeta>
  ),
  Actions: (props) => <MessageActions {...props} data-mine="" />,
};
const tuned: ThreadSlots = {
  Composer: (props) => <Composer {...props} maxRows={3} accept="image/*, .PDF" />,
  Reactions: (props) => <ReactionBar {...props} quick={['🦆']} max={2} />,
  Typing: (props) => <TypingIndicator {...props} max={1} />,
};
const views: ChatProps['thread'] = {
  renderDay: (name, at) => <i data-mine={new Date(at).toISOString().slice(0, 10)}>{name.toUpperCase()}</i>,
  renderSystem: (item) =>
    item.metadata['kind'] === 'joined' ? <i data-mine="">→ {item.text}</i> : undefined,
};
const wait = <T,>(value: T): Promise<T> =>
  new Promise((done) => Object.assign(globalThis, { answer: () => done(value) }));
const triggers: Trigger[] = [
  {
    character: '/',
    first: true,
    label: 'Commands',
    find: (query) =>
      ['/away', '/archive', '/remind']
        .filter((text) => text.startsWith(`/${query}`))
        .map((text) => ({ text, label: <b>{text}</b> })),
  },
  { character: '#', label: 'Orders', find: (query) => wait(query === '41' ? [{ text: '#4100' }] : []) },
];
const laid: ThreadSlots = {
  Message: (props) => <Message {...props} variant="rows" />,
  Banner: (props) => (
    <ConnectionBanner
      {...props}
      delay={0}
      renderState={(state, usual) => (state === 'lost' ? <i data-mine="">{usual}</i> : null)}
    />
  ),
  Composer: (props) => <Composer {...props} triggers={triggers} />,
};
const sections: ConversationListProps['sections'] = [
  { title: 'People', has: ({ type }) => type === 'direct' },
  { title: 'Teams', has: ({ muted }) => !muted },
];
const { theme, dir, more = 0 } = given;
for (let i = 1; i <= more; i++) {
  const name = `K${String(i).padStart(4, '0')}`;
  names.set(`c${i}`, name);
  const story = one(
    `conv_c${i}`,
    `c${i}`,
    `I am ${name}`,
    new Date(Date.parse('2026-10-01T00:00:00Z') - i * 60_000).toISOString(),
    { type: 'group', name },
  );
  server.stories.set(story.id, { ...story, members: ['nora', `c${i}`] });
}
server.failingFirst = given.failingFirst ?? null;
server.features = given.features;
server.refused = given.refused ?? null;
const root = document.getElementById('root')!;
root.style.fontFamily = "'Geist Variable', sans-serif";
createRoot(root).render(
  <ParleyProvider
    client={client}
    connect
    locale="en-GB"
    now={() => Date.parse(at('09:50'))}
    {...(theme ? { theme } : {})}
    {...(dir ? { dir } : {})}
    {...(given.slots ? { slots } : {})}
  >
    <Chat
      {...(given.parts ? { slots: parts, thread: { receipts: 'every' as const } } : {})}
      {...(given.tuned ? { slots: tuned, thread: views } : {})}
      {...(given.laid ? { slots: laid } : {})}
      list={{
        sort: (a, b) => b.lastActivityAt.localeCompare(a.lastActivityAt),
        ...(given.laid ? { sections } : {}),
      }}
      aside={
        given.wire ? (
          <WirePanel wire={wire} conversationId="conv_tomas" reveal={given.wire === 'revealed'} />
        ) : null
      }
    />
  </ParleyProvider>,
);
