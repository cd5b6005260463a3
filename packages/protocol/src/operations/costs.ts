import { limits } from '../limits.ts';
import type { Input, OperationName } from './index.ts';

/**
 * What a call costs the store, beside the reading of one thing, which is 1: environments take turns by it, so that a page of 200
 * messages stands for several of 10. Requests still count as one against rate limits.
 *
 * 0: it takes no turn. Sends, reads and syncs are gathered into batches that have bounds of their own; what waits for a server
 * that is not ours, or for a password's hash, holds nothing of the store meanwhile.
 */
const costs: { readonly [N in OperationName]?: (input: Input<N>) => number } = {
  'messages.list': page(50),
  'events.list': page(50),
  'conversations.list': page(25),
  'users.list': page(100),
  'users.lookup': ({ userIds }) => 1 + userIds.length / 50,
  'members.list': page(100),
  'webhooks.deliveries': page(100),
  'calls.list': page(10),
  'calls.start': () => 4,
  'logs.list': ({ limit = limits.pageDefault }) => 2 + limit / 100,
  'overview.get': () => 2,
  'diagnostics.delivery': () => 5,
  'messages.versions': () => 3,
  'conversations.create': ({ type, members }) => (type === 'direct' ? 2 : 2 + members.length / 25),
  'members.add': ({ userIds }) => 2 + userIds.length / 25,
  'analytics.get': () => 8,
  'usage.get': () => 2,
  'conversations.delete': () => 4,
  'messages.update': () => 2,
  'messages.delete': () => 2,
  'messages.send': () => 0,
  'conversations.read': () => 0,
  sync: () => 0,
  'uploads.complete': () => 0,
  'webhooks.test': () => 0,
  'storage.testDatabase': () => 0,
  'storage.migrateDatabase': () => 0,
  'storage.promote': () => 0,
  'storage.setMedia': () => 0,
  'storage.testMedia': () => 0,
  'session.create': () => 0,
  'session.reauth': () => 0,
  'account.changePassword': () => 0,
  'password.reset': () => 0,
  'invitations.accept': () => 0,
};

/** So many items of a page cost as much as the reading of one thing. */
function page(items: number) {
  return ({ limit = limits.pageDefault }: { limit?: number }): number => 1 + limit / items;
}

/** @param input as its schemas allow. */
export const costOf = (name: OperationName, input: unknown): number =>
  (costs[name] as ((input: unknown) => number) | undefined)?.(input) ?? 1;
