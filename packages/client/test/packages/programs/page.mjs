// What a page or an app bundles: connects, sends one message, and says so.
import { createClient } from '@parley/client';
import { indexedDbStorage } from '@parley/client/indexed-db';
import { keyValueStorage } from '@parley/client/key-value';

const { url, token, to, text } = globalThis.parleyTest;

async function send() {
  const values = new Map();
  const storage = keyValueStorage({
    getItem: (key) => values.get(key) ?? null,
    setItem: (key, value) => void values.set(key, value),
  });
  const client = createClient({ url, token: () => token, storage, wake: () => () => undefined });
  await client.connect();
  const chat = await client.conversations.createDirect(to);
  const sent = new Promise((resolve, reject) => {
    client.on('sent', resolve);
    client.on('failed', reject);
  });
  chat.send(text);
  const { status } = await sent;
  client.disconnect();
  return { status, kept: values.size > 0, indexedDb: typeof indexedDbStorage };
}

globalThis.parleyTest.done = send();
