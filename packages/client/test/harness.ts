import { createClient } from '../src/index.ts';
import type { Client, ClientOptions, ConversationHandle } from '../src/index.ts';
import { FakeClock, seeded } from './fake-clock.ts';
import { FakeServer } from './fake-server.ts';

export function world(seed = 1) {
  const clock = new FakeClock();
  // It has a clock of its own, which nobody sets.
  const server = new FakeServer({
    now: () => clock.time,
    setTimeout: (fn, ms) => clock.setTimeout(fn, ms),
    clearTimeout: (handle) => clock.clearTimeout(handle),
  });
  let ids = 0;
  const client = (user: string, options: Partial<ClientOptions> = {}): Client =>
    createClient({
      url: 'http://chat.test',
      env: 'env_test',
      token: () => user,
      WebSocket: server.WebSocket(),
      fetch: server.fetch,
      clock,
      random: seeded(seed),
      newId: () => `id-${++ids}`,
      wake: () => () => {},
      ...options,
    });
  return { clock, server, client };
}

/** Connects and runs until it is done. */
export async function connected(client: Client, clock: FakeClock): Promise<Client> {
  const done = client.connect();
  await clock.advance(0);
  await done;
  return client;
}

export const texts = (conversation: ConversationHandle): (string | null)[] =>
  conversation.messages.get().items.map((item) => item.text);
export const statuses = (conversation: ConversationHandle): string[] =>
  conversation.messages.get().items.map((item) => `${item.text}:${item.status}`);
