import assert from 'node:assert/strict';
import { createClient } from '../../src/index.ts';
import type { Client, ConversationHandle } from '../../src/index.ts';
import { environments } from '../../../server/test/support/service.ts';
import { tokenFor } from '../chaos/actor.ts';

/** Real clients of a real service, and what they show. */

export const { secretKey } = environments.dev;

export const newClient = (url: string, userId: string, random: () => number = Math.random): Client =>
  createClient({ url, token: () => tokenFor(secretKey, userId), random });

export interface Shown {
  list: unknown[];
  unreadTotal: number;
  conversations: Record<string, { messages: unknown[]; members: unknown[]; pins: unknown[] }>;
}

/**
 * Everything a user sees, but for `lastActivityAt`, whose exact time no event tells, and the order that goes by it. Delivery marks are left out: looking moves them. Read marks of others are ephemeral (receipts#receipt).
 */
export function shown(client: Client, handles: Iterable<ConversationHandle>): Shown {
  const { items, unreadTotal } = client.conversations.get();
  const conversations: Shown['conversations'] = {};
  for (const handle of handles) {
    const { items: messages, status } = handle.messages.get();
    // Whoever was put out keeps what it saw, and gets no more.
    if (status === 'removed') continue;
    conversations[handle.id] = {
      // What was refused is shown to its author alone, on this device.
      messages: messages
        .filter((m) => m.status !== 'failed')
        .map(({ key: _key, clientMsgId: _id, ...message }) => message),
      members: handle.members
        .get()
        .map(({ userId, role }) => `${userId} ${role}`)
        .sort(),
      pins: handle.pins.get().items.map(({ key: _key, ...message }) => message),
    };
  }
  const list = items.map(({ lastActivityAt: _at, ...item }) => item).sort((a, b) => (a.id < b.id ? -1 : 1));
  return { list, unreadTotal, conversations };
}

/** The same user on a device that has just been switched on. */
export async function fresh(url: string, userId: string, ids: string[]): Promise<Shown> {
  const client = newClient(url, userId);
  try {
    await client.connect();
    while (client.conversations.get().hasMore) await client.conversations.loadMore();
    const mine = new Set(client.conversations.get().items.map((item) => item.id));
    const handles = ids.filter((id) => mine.has(id)).map((id) => client.conversations.open(id));
    for (const handle of handles) {
      await whenReady(handle);
      while (handle.messages.get().hasOlder) await handle.loadOlder();
      await handle.loadMembers();
      await eventually(() => handle.pins.get().status === 'ready');
    }
    return shown(client, handles);
  } finally {
    client.disconnect();
  }
}

export const whenReady = (handle: ConversationHandle): Promise<void> =>
  new Promise((resolve) => {
    const look = (): void => {
      if (handle.messages.get().status === 'loading') return;
      stop();
      resolve();
    };
    const stop = handle.messages.subscribe(look);
    look();
  });

/** What is under way still arrives: a moment is given, then it must be so. */
export async function eventually(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + 120_000; !(await isSo());) {
    if (Date.now() > deadline) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Connected, and everything sent or refused, on all of them: whoever sends changes what the others see. */
export async function settled(
  clients: { client: Client; handles: Map<string, ConversationHandle> }[],
): Promise<void> {
  const busy = () =>
    clients.filter(
      ({ client, handles }) =>
        client.state !== 'connected' ||
        [...handles.values()].some((handle) => {
          const { items, status } = handle.messages.get();
          return status === 'loading' || items.some((i) => i.status === 'pending');
        }),
    );
  await eventually(() => busy().length === 0);
  assert.deepEqual(
    busy().map(({ client }) => client.userId),
    [],
    'all are connected and have sent everything',
  );
}

/** The client's state equals that of a fresh one. */
export async function assertConverged(
  url: string,
  client: Client,
  handles: Map<string, ConversationHandle>,
  what: string,
): Promise<void> {
  const userId = client.userId!;
  for (const handle of handles.values()) {
    while (handle.messages.get().hasNewer) await handle.loadNewer();
    while (handle.messages.get().hasOlder && handle.messages.get().status === 'ready')
      await handle.loadOlder();
  }
  const expected = await fresh(url, userId, [...handles.keys()]);
  const same = () => {
    try {
      assert.deepEqual(shown(client, handles.values()), expected);
      return true;
    } catch {
      return false;
    }
  };
  await eventually(same);
  assert.deepEqual(
    shown(client, handles.values()),
    expected,
    `${what}: ${userId} sees what a fresh client sees`,
  );
}
