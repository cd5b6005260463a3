import { createClient } from '@parley/client';
import type { Client } from '@parley/client';
import { createCalls } from '@parley/client/calls';
import type { Calls } from '@parley/client/calls';
import { indexedDbStorage } from '@parley/client/indexed-db';
import { Deletions } from './deletions.ts';
import { Network } from './network.ts';
import { developmentToken } from './people.ts';

/** One person in this page: a client, its calls, and a network that can be cut. */
export interface Session {
  userId: string;
  client: Client;
  calls: Calls;
  network: Network;
  deletions: Deletions;
  close(): void;
}

const open = new Map<string, Session>();
const environment = (): string => document.body.dataset['environment']!;
const access = (userId: string) => ({
  url: location.origin,
  env: environment(),
  token: () => developmentToken(userId),
});

/** The session of this person; several parts of the page share it until one closes it. */
export function sessionOf(userId: string): Session {
  const known = open.get(userId);
  if (known) return known;
  const network = new Network();
  const client = createClient({
    ...access(userId),
    ...network.options,
    storage: indexedDbStorage('parley-demo'),
    sort: 'message',
    sdk: 'demo/0.1.0',
  });
  const calls = createCalls(client);
  const session: Session = {
    userId,
    client,
    calls,
    network,
    deletions: new Deletions(client),
    close: () => {
      if (!open.delete(userId)) return;
      calls.close();
      client.disconnect();
    },
  };
  open.set(userId, session);
  client.connect().then(
    // After a reload the page joins its call again.
    () => calls.rejoin().catch(() => null),
    () => undefined, // The banner says so.
  );
  return session;
}

/** A client for a user who is not in the page. Its first request creates the user. */
export const clientOf = (userId: string, sdk = 'demo/0.1.0'): Client =>
  createClient({ ...access(userId), sdk });

/** Makes sure that people exist: a chosen person who has never signed in is created. */
export async function ensurePeople(ids: readonly string[]): Promise<void> {
  for (const id of ids) await clientOf(id).wire.http('GET', `/users/${encodeURIComponent(id)}`);
}
