// A bot: answers /help and /roll in every conversation that it is a member of, also what was asked while it was away.
//   PARLEY_URL=http://127.0.0.1:8080 PARLEY_SECRET_KEY=sk_live_… npm start
import { randomInt } from 'node:crypto';
import { createClient } from '@parley/client';
import { catchUpAll } from '@parley/client/bots';
import { fileStorage } from '@parley/client/file';
import { Parley } from '@parley/server-sdk';

const { PARLEY_URL: url, PARLEY_SECRET_KEY: secretKey, STATE = 'bot.json' } = process.env;
const parley = new Parley({ url, secretKey });
const userId = 'helper-bot';
await parley.users.upsert(userId, { name: 'Helper' });

const answers = {
  '/help': () => 'I know /help and /roll.',
  '/roll': () => `You rolled ${randomInt(1, 7)}.`,
};

const bot = createClient({
  url,
  token: () => parley.signToken({ userId }), // a bot is a server of yours: it may sign for itself
  catchUp: catchUpAll,
  storage: fileStorage(STATE), // how far it has read, over restarts
});
bot.on('message', ({ conversationId, message }) => {
  const answer = message.senderId !== userId && answers[message.text?.trim()];
  if (answer) bot.conversations.send(conversationId, { text: answer(), replyTo: message.id });
});
bot.on('error', (error) => console.error(error.message));
// How far it has read is kept every two seconds, and at the end.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => bot.disconnect());
await bot.connect();
console.log(`${userId} is connected`);
