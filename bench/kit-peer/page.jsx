// stream-chat-react with a client whose requests are answered here: the same 10,000 messages as the kit's page, as functions of their place.
import { memo, useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { StreamChat } from 'stream-chat';
import {
  Channel,
  Chat,
  MessageComposer,
  MessageUI,
  useMessageContext,
  VirtualizedMessageList,
  Window,
} from 'stream-chat-react';
import 'stream-chat-react/dist/css/index.css';

const words =
  'the lamp is here but its arm wobbles a little so I would ask for one more screw of the small kind'.split(
    ' ',
  );
const people = ['tomas', 'ines', 'mei', 'jonas'];
const start = Date.parse('2026-01-05T08:00:00Z');
let length = 10_000;
const cid = 'messaging:long';
const userOf = (id) => ({ id, name: id, role: 'user', online: true });
const message = (seq) => {
  const at = new Date(start + seq * 90_000).toISOString();
  const text = `${seq}: ${words.slice(seq % 11, (seq % 11) + 2 + (seq % 8)).join(' ')}`;
  return {
    id: `msg_${seq}`,
    cid,
    type: 'regular',
    text,
    html: `<p>${text}</p>`,
    user: userOf(seq % 5 === 0 ? 'nora' : people[seq % people.length]),
    attachments: [],
    latest_reactions: [],
    own_reactions: [],
    reaction_counts: {},
    reaction_scores: {},
    mentioned_users: [],
    reply_count: 0,
    status: 'received',
    created_at: at,
    updated_at: at,
  };
};
const range = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => message(from + i));
const config = {
  name: 'messaging',
  typing_events: true,
  read_events: true,
  connect_events: true,
  replies: false,
  reactions: false,
  uploads: false,
  url_enrichment: false,
  max_message_length: 5000,
  commands: [],
};
const member = (id) => ({
  user_id: id,
  user: userOf(id),
  role: 'member',
  created_at: '2026-01-05T08:00:00Z',
});
const ids = ['nora', ...people];

const client = new StreamChat('key', { warmUp: false });
client.doAxiosRequest = async (_type, url, data) => {
  if (!/\/query$/.test(url)) return {};
  const wanted = data?.messages ?? {};
  const limit = wanted.limit ?? 100;
  const to = wanted.id_lt ? Number(wanted.id_lt.slice(4)) - 1 : length;
  const from = Math.max(1, to - limit + 1);
  return {
    channel: {
      id: 'long',
      type: 'messaging',
      cid,
      name: 'Packing table',
      config,
      own_capabilities: ['send-message', 'read-events', 'typing-events'],
      created_at: '2026-01-05T08:00:00Z',
      updated_at: '2026-01-05T08:00:00Z',
      member_count: ids.length,
    },
    messages: range(from, to),
    members: ids.map(member),
    membership: member('nora'),
    read: ids.map((id) => ({
      user: userOf(id),
      last_read: message(length).created_at,
      last_read_message_id: `msg_${length}`,
      unread_messages: 0,
    })),
    watchers: [],
    pinned_messages: [],
    threads: [],
  };
};
client.user = client._user = userOf('nora');
client.userID = 'nora';
client.userToken = 'token';
client.anonymous = false;
client.wsPromise = Promise.resolve();
client.wsConnection = { isHealthy: true, connectionID: 'one', disconnect: async () => {} };
client.activeChannels = {};
const channel = client.channel('messaging', 'long');

let show = () => {};
const page = {
  rendered: [],
  open: () => show(true),
  arrive: () => {
    const seq = ++length;
    client.dispatchEvent({
      type: 'message.new',
      cid,
      channel_id: 'long',
      channel_type: 'messaging',
      message: message(seq),
      user: message(seq).user,
      created_at: new Date().toISOString(),
    });
  },
};
window.page = page;

const Counted = memo((props) => {
  const { message: shown } = useMessageContext();
  page.rendered.push(shown.text);
  return <MessageUI {...props} />;
});

function Page() {
  const [shown, setShown] = useState(false);
  useEffect(() => {
    show = setShown;
  }, []);
  if (!shown) return null;
  return (
    <Chat client={client}>
      <Channel channel={channel}>
        <Window>
          <VirtualizedMessageList Message={Counted} />
          <MessageComposer />
        </Window>
      </Channel>
    </Chat>
  );
}
createRoot(document.getElementById('root')).render(<Page />);
