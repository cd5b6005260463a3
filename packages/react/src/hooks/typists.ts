import { useMemo, useSyncExternalStore } from 'react';
import type { Client } from '@parley/client';
import { useClient } from './context.ts';

const expiryMs = 6_000;
/** More conversations in which somebody types at one moment are not followed. */
const maxFollowed = 200;
const nobody: readonly string[] = [];

/**
 * Who types in which conversation, open or not, from the client's events. A person types from `start` until `stop`, a
 * message of that person, 6 s of silence, or the loss of the connection.
 */
class Typists {
  #now = new Map<string, readonly string[]>();
  #timers = new Map<string, ReturnType<typeof setTimeout>>();
  #listeners = new Map<string, Set<() => void>>();
  #client: Client;
  #offs: (() => void)[] = [];
  constructor(client: Client) {
    this.#client = client;
  }
  get = (id: string): readonly string[] => this.#now.get(id) ?? nobody;
  subscribe(id: string, listener: () => void): () => void {
    if (this.#listeners.size === 0) this.#start();
    const own = this.#listeners.get(id) ?? new Set();
    this.#listeners.set(id, own.add(listener));
    return () => {
      own.delete(listener);
      if (own.size === 0 && this.#listeners.get(id) === own) this.#listeners.delete(id);
      if (this.#listeners.size === 0) this.#stop();
    };
  }
  #start(): void {
    const { on } = this.#client;
    this.#offs = [
      on('typing', ({ conversationId, userId, state }) =>
        this.#set(conversationId, userId, state === 'start'),
      ),
      on('message', ({ conversationId, message }) => {
        if (message.senderId !== null) this.#set(conversationId, message.senderId, false);
      }),
      on('state', ({ state }) => {
        if (state !== 'connected') this.#clear();
      }),
    ];
  }
  #stop(): void {
    for (const off of this.#offs.splice(0)) off();
    this.#clear();
  }
  #clear(): void {
    for (const [id, users] of [...this.#now]) for (const userId of users) this.#set(id, userId, false);
  }
  #set(id: string, userId: string, types: boolean): void {
    const before = this.get(id);
    const key = `${id} ${userId}`;
    clearTimeout(this.#timers.get(key));
    this.#timers.delete(key);
    if (types && (this.#now.has(id) || this.#now.size < maxFollowed)) {
      this.#timers.set(
        key,
        setTimeout(() => this.#set(id, userId, false), expiryMs),
      );
      if (before.includes(userId)) return;
      this.#now.set(id, [...before, userId]);
    } else {
      if (!before.includes(userId)) return;
      const left = before.filter((one) => one !== userId);
      if (left.length > 0) this.#now.set(id, left);
      else this.#now.delete(id);
    }
    for (const listener of [...(this.#listeners.get(id) ?? [])]) listener();
  }
}

const all = new WeakMap<Client, Typists>();
const initial = (): readonly string[] => nobody;

/** The typing users of a conversation, which need not be open: for rows of a list. `useTyping` also reports that this user types. */
export function useTypists(id: string): readonly string[] {
  const client = useClient();
  const subscribe = useMemo(() => {
    let typists = all.get(client);
    if (!typists) all.set(client, (typists = new Typists(client)));
    return (listener: () => void) => typists.subscribe(id, listener);
  }, [client, id]);
  return useSyncExternalStore(subscribe, () => all.get(client)?.get(id) ?? nobody, initial);
}
