import { useCallback, useSyncExternalStore } from 'react';
import type { Client, Conversation } from '@parley/client';
import { useClient } from './context.ts';

interface Entry {
  conversation: Conversation;
  users: number;
}

const registries = new WeakMap<Client, Map<string, Entry>>();

const of = (client: Client): Map<string, Entry> => {
  let registry = registries.get(client);
  if (!registry) registries.set(client, (registry = new Map()));
  return registry;
};

/**
 * Opens the conversation for one more user; the returned function releases it. States: closed --first acquire--> open
 * --last release--> idle --acquire--> open; idle --end of the task--> closed. StrictMode, and a component that makes
 * room for another one, release and acquire within one task: the conversation stays open.
 */
function acquire(client: Client, id: string): () => void {
  const registry = of(client);
  let entry = registry.get(id);
  if (!entry) registry.set(id, (entry = { conversation: client.conversations.open(id), users: 0 }));
  const held = entry;
  held.users++;
  let released = false;
  return () => {
    if (released) return;
    released = true;
    held.users--;
    queueMicrotask(() => {
      if (held.users > 0 || registry.get(id) !== held) return;
      registry.delete(id);
      held.conversation.close();
    });
  };
}

const none = (): null => null;

/**
 * The open conversation, with everything that one can do in it. It is open for as long as a component uses it, and
 * null before the first one is mounted, on the server, and without an id.
 */
export function useConversation(id: string | null | undefined): Conversation | null {
  const client = useClient();
  const subscribe = useCallback(
    (changed: () => void) => {
      if (id == null) return () => undefined;
      const release = acquire(client, id);
      changed();
      return release;
    },
    [client, id],
  );
  const get = () => (id == null ? null : (of(client).get(id)?.conversation ?? null));
  return useSyncExternalStore(subscribe, get, none);
}
