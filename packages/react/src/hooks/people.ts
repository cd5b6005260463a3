import { useEffect, useMemo, useSyncExternalStore } from 'react';
import type { Client, ConversationListItem, Member, PresenceItem, User } from '@parley/client';
import { useClient, useStrings } from './context.ts';
import { useConversation } from './open.ts';
import { nothing, useStable } from './store.ts';

const unknown = (): undefined => undefined;

/** A user's name and picture. Unknown users are fetched, all that a page shows with one request. */
export function useUser(id: string | null | undefined): User | undefined {
  const { users } = useClient();
  return useSyncExternalStore(
    users.store.subscribe,
    () => (id == null ? undefined : users.find(id)),
    unknown,
  );
}

/** The name to show for a user: the id until the name is known. */
export function useName(id: string | null | undefined): string {
  const strings = useStrings();
  const user = useUser(id);
  return id == null ? strings.someone : user?.name || id;
}

/** The other one of a direct conversation; null for groups. */
export function otherOf(item: ConversationListItem | undefined, me: string | null): string | null {
  if (item?.type !== 'direct') return null;
  return item.members?.find(({ userId }) => userId !== me)?.userId ?? item.members?.[0]?.userId ?? null;
}

/** The name of a conversation: its own, or that of the other person. */
export function useTitle(item: ConversationListItem | undefined): string {
  const strings = useStrings();
  const other = otherOf(item, useClient().userId);
  const name = useName(other);
  return item?.name || (other === null ? strings.unnamedGroup : name);
}

const nobody: readonly Member[] = [];
const initial = (): readonly Member[] => nobody;

/** The members of a conversation with their marks; loaded when the first component asks. */
export function useMembers(id: string | null | undefined): readonly Member[] {
  const { subscribe, get } = useLoaded(id);
  return useSyncExternalStore(subscribe, get, initial);
}

/** Whether the user is owner or moderator of a conversation; renders again only when that changes. */
export function useModerates(id: string | null | undefined): boolean {
  const me = useClient().userId;
  const { subscribe, get } = useLoaded(id);
  const moderates = () => get().some(({ userId, role }) => userId === me && role !== 'member');
  return useSyncExternalStore(subscribe, moderates, no);
}
const no = (): boolean => false;

function useLoaded(id: string | null | undefined) {
  const conversation = useConversation(id);
  useEffect(() => {
    // A conversation that is gone says so in its messages.
    if (conversation && conversation.members.get().length === 0)
      conversation.loadMembers().catch(() => undefined);
  }, [conversation]);
  return conversation?.members ?? empty;
}
const empty = { subscribe: nothing, get: initial };

const maxWatched = 200;
const watchers = new WeakMap<Client, Map<string, number>>();
const scheduled = new WeakSet<Client>();

/** All uses of `usePresence` together are one watch; it is sent when the task ends in which they changed. */
function watch(client: Client, ids: readonly string[]): () => void {
  let counts = watchers.get(client);
  if (!counts) watchers.set(client, (counts = new Map()));
  const held = counts;
  const schedule = (): void => {
    if (scheduled.has(client)) return;
    scheduled.add(client);
    queueMicrotask(() => {
      scheduled.delete(client);
      // Without a connection the set takes effect with the next one.
      client.presence.watch([...held.keys()].slice(0, maxWatched)).catch(() => undefined);
    });
  };
  const before = held.size;
  for (const id of ids) held.set(id, (held.get(id) ?? 0) + 1);
  if (held.size !== before) schedule();
  return () => {
    const size = held.size;
    for (const id of ids) {
      const left = held.get(id)! - 1;
      if (left > 0) held.set(id, left);
      else held.delete(id);
    }
    if (held.size !== size) schedule();
  };
}

const noPresence: ReadonlyMap<string, PresenceItem> = new Map();
const initialPresence = (): ReadonlyMap<string, PresenceItem> => noPresence;
const samePresence = (a: ReadonlyMap<string, PresenceItem>, b: ReadonlyMap<string, PresenceItem>): boolean =>
  a.size === b.size && [...a].every(([id, item]) => b.get(id) === item);

/** The online users among these users. Without a connection presence is unknown, and the map is empty. */
export function usePresence(ids: readonly (string | null | undefined)[]): ReadonlyMap<string, PresenceItem> {
  const client = useClient();
  const list = [...new Set(ids.filter((id) => id != null))].sort().join('\n');
  const wanted = useMemo(() => (list === '' ? [] : list.split('\n')), [list]);
  useEffect(() => watch(client, wanted), [client, wanted]);
  const stable = useStable(samePresence);
  const { subscribe } = useMemo(
    () => ({
      subscribe: (changed: () => void) => {
        const offs = [client.presence.store.subscribe(changed), client.stateStore.subscribe(changed)];
        return () => offs.forEach((off) => off());
      },
    }),
    [client],
  );
  const get = (): ReadonlyMap<string, PresenceItem> => {
    const found = new Map<string, PresenceItem>();
    if (client.state === 'connected')
      for (const id of wanted) {
        const item = client.presence.store.get().get(id);
        if (item) found.set(id, item);
      }
    return stable(found);
  };
  return useSyncExternalStore(subscribe, get, initialPresence);
}
