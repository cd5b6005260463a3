/** Code for the first message, to copy. */

interface Place {
  url: string;
  env: string;
  secretKey: string;
}

export const firstMessage: Record<string, (place: Place) => string> = {
  curl: ({ url, secretKey }) => `export PARLEY_SECRET_KEY=${secretKey}

CONVERSATION=$(curl -s ${url}/v1/conversations \\
  -H "Authorization: Bearer $PARLEY_SECRET_KEY" -H 'Content-Type: application/json' \\
  -d '{ "type": "direct", "members": ["alice", "bob"] }' | sed 's/.*"id":"\\(conv_[^"]*\\)".*/\\1/')

curl ${url}/v1/conversations/$CONVERSATION/messages \\
  -H "Authorization: Bearer $PARLEY_SECRET_KEY" -H 'Content-Type: application/json' \\
  -d '{ "senderId": "alice", "text": "Hello, Bob!" }'`,

  Node: ({
    url,
    secretKey,
  }) => `// In Parley's folder, where the SDK is: PARLEY_SECRET_KEY=${secretKey} node first.mjs
import { Parley } from '@parley/server-sdk';

const parley = new Parley({ secretKey: process.env.PARLEY_SECRET_KEY, url: '${url}' });
const conversation = await parley.conversations.create({ type: 'direct', members: ['alice', 'bob'] });
await parley.messages.send(conversation.id, { senderId: 'alice', text: 'Hello, Bob!' });`,

  Browser: ({ url, env }) => `import { createClient } from '@parley/client';

// Your server mints the token: parley.signToken({ userId: 'alice' })
const client = createClient({
  url: '${url}',
  env: '${env}',
  token: () => fetch('/chat-token').then((answer) => answer.text()),
});
await client.connect();
const chat = await client.conversations.createDirect('bob');
chat.send('Hello, Bob!');`,

  React: () => `import { useEffect, useMemo, useSyncExternalStore } from 'react';

// \`client\` is made once, outside of components, as in the browser's example.
export function Chat({ client, conversationId }) {
  const chat = useMemo(() => client.conversations.open(conversationId), [client, conversationId]);
  useEffect(() => () => chat.close(), [chat]);
  const { items } = useSyncExternalStore(chat.messages.subscribe, chat.messages.get);
  return (
    <>
      <ul>{items.map((message) => <li key={message.clientMsgId ?? message.id}>{message.text}</li>)}</ul>
      <button onClick={() => chat.send('Hello, Bob!')}>Say hello</button>
    </>
  );
}`,
};
