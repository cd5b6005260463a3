// A server and two users of it in one program, for every runtime: prints what happened as JSON.
import { createClient, ParleyError } from '@parley/client';
import { catchUpAll } from '@parley/client/bots';
import { createCalls } from '@parley/client/calls';
import { fileStorage } from '@parley/client/file';
import { Parley } from '@parley/server-sdk';

const [url, secretKey, name] = process.argv.slice(2);
const parley = new Parley({ url, secretKey });
const [alice, bob] = [`alice-${name}`, `bob-${name}`];
const conversation = await parley.conversations.create({ type: 'direct', members: [alice, bob] });

// Node has had a WebSocket since 22.
const WebSocket = globalThis.WebSocket ?? (await import('ws')).default;
const connect = async (userId, more = {}) => {
  const client = createClient({ url, token: () => parley.signToken({ userId }), WebSocket, ...more });
  await client.connect();
  return client;
};
const sender = await connect(alice);
const receiver = await connect(bob, { storage: fileStorage(`${name}.json`), catchUp: catchUpAll });
const received = new Promise((resolve) => receiver.on('message', ({ message }) => resolve(message.text)));
sender.conversations.open(conversation.id).send(`hello from ${name}`);

const calls = createCalls(sender);
const refused = await calls.start(conversation.id, { kind: 'audio' }).catch((error) => error);
const wrong = await parley.conversations.get('conv_none').catch((error) => error);
console.log(
  JSON.stringify({
    received: await received,
    calls: refused instanceof ParleyError && refused.code,
    advice: /npm install mediasoup-client/.test(refused.message),
    wrong: wrong.code,
    where: /server-sdk.dist.transport\.js/.test(wrong.stack),
  }),
);
calls.close();
sender.disconnect();
receiver.disconnect();
