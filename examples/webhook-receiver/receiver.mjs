// Receives the events of an environment: verifies each, drops what it has seen, answers at once, works afterwards.
//   WEBHOOK_SECRET=whsec_… PORT=3001 npm start        (the secret is shown when the webhook is created)
import { createServer } from 'node:http';
import { verifyWebhook } from '@parley/server-sdk';

const { WEBHOOK_SECRET, PORT = '3001' } = process.env;
const largest = 1024 * 1024;
const mostSeen = 10_000;
/** In place of your database: every attempt of an event has the same id. */
const seen = new Set();

function work(event) {
  switch (event.type) {
    case 'message.created':
      return console.log(`${event.type} ${event.data.message.senderId}: ${event.data.message.text}`);
    default: // later versions send further types
      return console.log(event.type);
  }
}

async function bodyOf(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > largest) throw new Error('The body is too large.');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const server = createServer(async (request, response) => {
  let event;
  try {
    // The body as it came: parsed and printed again it would have another signature.
    event = verifyWebhook(await bodyOf(request), request.headers, WEBHOOK_SECRET);
  } catch (error) {
    response.writeHead(400).end(error.message);
    return;
  }
  response.writeHead(204).end();
  if (seen.has(event.id)) return;
  seen.add(event.id);
  if (seen.size > mostSeen) seen.delete(seen.values().next().value);
  work(event);
});
server.listen(Number(PORT), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
