/** The code behind everything that one can do in the demo, as it stands in an application. */

export type ActionId =
  | 'connect'
  | 'send'
  | 'reply'
  | 'mention'
  | 'level'
  | 'edit'
  | 'delete'
  | 'typing'
  | 'read'
  | 'presence'
  | 'upload'
  | 'voice'
  | 'pin'
  | 'poll'
  | 'vote'
  | 'direct'
  | 'group'
  | 'members'
  | 'offline'
  | 'call'
  | 'answer'
  | 'screen';

export interface Snippet {
  id: ActionId;
  title: string;
  code: string;
}

export const snippets: readonly Snippet[] = [
  {
    id: 'connect',
    title: 'Connect and show the chat',
    code: `const client = createClient({
  url: 'https://chat.example.com',
  token: () => fetch('/chat-token').then((r) => r.text()),
  storage: indexedDbStorage(),
});

<ParleyProvider client={client} connect>
  <Chat />
</ParleyProvider>`,
  },
  {
    id: 'send',
    title: 'Send a message',
    code: `const chat = client.conversations.open(id);
chat.send('Hello!'); // shows at once, sent once`,
  },
  {
    id: 'reply',
    title: 'Reply to a message',
    code: `chat.send({ text: 'Found it.', replyTo: message.id });`,
  },
  {
    id: 'mention',
    title: 'Mention somebody',
    code: `chat.send(compose().text('Ask ').mention(user).toDraft());

const { items } = useMentions(); // mentions of this user`,
  },
  {
    id: 'level',
    title: 'Choose what is pushed',
    code: `await chat.setLevel('mentions'); // or all, none
await chat.setLevel('none', { until: tomorrow });`,
  },
  {
    id: 'edit',
    title: 'Edit a message',
    code: `await chat.edit(message.id, { text: 'Better words' });`,
  },
  {
    id: 'delete',
    title: 'Delete, with time to undo',
    code: `const timer = setTimeout(() => chat.delete(message.id), 5_000);
undo.onclick = () => clearTimeout(timer);`,
  },
  {
    id: 'typing',
    title: 'Show who types',
    code: `input.oninput = () => chat.startTyping();

const { userIds } = useTyping(id); // the others`,
  },
  {
    id: 'read',
    title: 'Mark as read, and see who has read',
    code: `chat.markRead();

const { state, readBy } = useReceipt(id, message);`,
  },
  {
    id: 'presence',
    title: 'See who is online',
    code: `const presence = usePresence(['tomas', 'ines']);
presence.get('tomas')?.online;`,
  },
  {
    id: 'upload',
    title: 'Send a file',
    code: `const { id } = await chat.upload(file, {
  onProgress: (part) => (bar.value = part),
});
chat.send({ text: 'Here it is', attachments: [id] });`,
  },
  {
    id: 'voice',
    title: 'Send a voice note',
    code: `const { id } = await chat.upload(recording, {
  durationMs: 4_200,
  waveform, // base64 of up to 128 bytes
});
chat.send({ attachments: [id] });`,
  },
  {
    id: 'pin',
    title: 'Pin a message',
    code: `await chat.pin(message.id);
await chat.unpin(message.id);

const { items } = usePins(id); // the newest pin first`,
  },
  {
    id: 'poll',
    title: 'Ask the others',
    code: `chat.send({
  poll: {
    question: 'When do we load the van?',
    options: [{ text: 'Today' }, { text: 'Tomorrow' }],
  },
});`,
  },
  {
    id: 'vote',
    title: 'Vote, and close the poll',
    code: `await chat.vote(message.id, [2]); // the option’s id
await chat.closePoll(message.id);

const { options, total, closed } = usePoll(message);`,
  },
  {
    id: 'direct',
    title: 'Begin a direct chat',
    code: `const chat = await client.conversations.createDirect('tomas');`,
  },
  {
    id: 'group',
    title: 'Make a group',
    code: `const chat = await client.conversations.createGroup(
  ['ines', 'sami'],
  { name: 'Packing table' },
);`,
  },
  {
    id: 'members',
    title: 'Add and remove members',
    code: `await chat.addMembers(['mei']);
await chat.removeMember('sami');
await chat.leave();`,
  },
  {
    id: 'offline',
    title: 'Work without a network',
    code: `chat.send('Written in a tunnel');
chat.messages.get().items.at(-1).status; // 'pending'
// Nothing else to do: it goes out by itself, in order, once.`,
  },
  {
    id: 'call',
    title: 'Call somebody',
    code: `const calls = createCalls(client);
const call = await calls.start(chat.id, { kind: 'video' });

<CallStage call={call} />`,
  },
  {
    id: 'answer',
    title: 'Answer a call',
    code: `<CallsProvider calls={calls}>
  <IncomingCall />
</CallsProvider>`,
  },
  {
    id: 'screen',
    title: 'Share the screen',
    code: `await call.shareScreen(); // large for everybody
await call.stopScreen();`,
  },
];
