import type { Attack } from '../kit.ts';
import { deleteMessages, eraseAuthor } from './deletes.ts';
import { hostileHook, manySenders } from './hook.ts';
import { lockedConversation, refusedAndRepeated } from './log.ts';
import { anonymousPages, largeGroups, largePages, unreadPages } from './pages.ts';
import { deleteWatched, watchStrangers } from './presence.ts';
import { pingFlood, silentSockets } from './sockets.ts';
import { developmentUsers, drippingUploads, parallelPuts, syncWithKeys } from './store.ts';
import { unresolvedWebhooks } from './webhooks.ts';

/** Everything that one tenant does to the others. */

export interface Row {
  /** A number, and a letter where there are several of it. */
  id: string;
  what: string;
  attack: Attack;
  /** What it uses up besides time: memory (always measured), descriptors, or what this statement counts. */
  resource?: 'descriptors' | { name: string; unit: 'MB' | 'rows'; sql: string };
  /** Webhooks are measured instead of sends. */
  webhooks?: boolean;
}

export const rows: readonly Row[] = [
  {
    id: '1',
    what: 'a row lock held on one conversation, sends into it',
    attack: lockedConversation,
  },
  {
    id: '2',
    what: '`presence.watch` of 200 strangers by a member of 1,200 groups, 20/s',
    attack: watchStrangers,
  },
  {
    id: '3a',
    what: 'own messages deleted in a group of 500, 20/s',
    attack: deleteMessages,
  },
  {
    id: '3b',
    what: 'a user with 400 messages in a group of 500 erased',
    attack: eraseAuthor,
  },
  {
    id: '4',
    what: 'history pages of 4.85 MB asked for on 150 connections and never read',
    attack: unreadPages,
  },
  {
    id: '5',
    what: '20 webhook endpoints on names that never resolve, 20 messages/s',
    attack: unresolvedWebhooks,
    webhooks: true,
  },
  {
    id: '6a',
    what: '`POST /v1/sync` of 1,200 conversations, each with a fresh `Idempotency-Key`, 20/s',
    attack: syncWithKeys,
    resource: {
      name: 'stored answers',
      unit: 'MB',
      sql: `SELECT pg_total_relation_size('idempotency') / 1048576.0 AS n`,
    },
  },
  {
    id: '6b',
    what: '20 parallel PUTs of 25 MB on one ticket',
    attack: parallelPuts,
  },
  { id: '7', what: 'pings at full speed on one socket', attack: pingFlood },
  {
    id: '8a',
    what: '5,000 sockets that never log in, opened again when closed',
    attack: silentSockets,
    resource: 'descriptors',
  },
  {
    id: '8b',
    what: '200 refused uploads that drip',
    attack: drippingUploads,
    resource: 'descriptors',
  },
  {
    id: '9a',
    what: 'anonymous `/docs` and unknown paths on 64 connections',
    attack: anonymousPages,
  },
  { id: '9b', what: 'history pages of 1 MB on 16 connections', attack: largePages },
  { id: '9c', what: 'groups of 500 made on 8 connections', attack: largeGroups },
  {
    id: '11',
    what: 'development tokens that make users, 16 connections',
    attack: developmentUsers,
    resource: { name: 'users', unit: 'rows', sql: 'SELECT count(*)::float8 AS n FROM users' },
  },
  {
    id: '12',
    what: 'a conversation of 500 watched members deleted',
    attack: deleteWatched,
  },
  {
    id: '13',
    what: 'refused and repeated messages by 20 users, 5/s each',
    attack: refusedAndRepeated,
  },
  {
    id: '14a',
    what: '500 connections send, without a hook',
    attack: manySenders,
  },
  {
    id: '14b',
    what: 'a before-send hook that hangs, drips, redirects and sends 1 GB, set anew twice a second; 500 connections send',
    attack: hostileHook,
  },
];

/** All rows, or those whose number or id is named. */
export function chosen(only: readonly string[] | null): Row[] {
  const named = (row: Row, name: string): boolean => name === row.id || name === row.id.replace(/\D/g, '');
  for (const name of only ?? [])
    if (!rows.some((row) => named(row, name))) throw new Error(`There is no row "${name}".`);
  return rows.filter((row) => only?.some((name) => named(row, name)) ?? true);
}
