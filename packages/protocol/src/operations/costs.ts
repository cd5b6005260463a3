import { limits } from '../limits.ts';
import type { Input, OperationName } from './index.ts';

/**
 * What a call costs the store; reading a single thing costs 1. Environments take turns by cost, so that a page of 200
 * messages counts like several of 10. For rate limits every request counts as one.
 *
 * A cost of 0 means that it takes no turn. Sends, reads and syncs are collected into batches with bounds of their
 * own; calls that wait for another server, or for a password hash, do not use the store meanwhile.
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

/** This many items of a page cost as much as reading a single thing. */
function page(items: number) {
  return ({ limit = limits.pageDefault }: { limit?: number }): number => 1 + limit / items;
}

/** @param input the validated input. */
export const costOf = (name: OperationName, input: unknown): number =>
  (costs[name] as ((input: unknown) => number) | undefined)?.(input) ?? 1;
