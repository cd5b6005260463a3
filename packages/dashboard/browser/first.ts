import type { CallName } from './api/address.ts';

/**
 * What the page of an area asks for at first, where its address has no query: the page's head asks for it before any script has
 * come. What has a `limit` is a list that comes page by page.
 */
export const first: Readonly<Record<string, readonly (readonly [CallName, Record<string, unknown>])[]>> = {
  '': [
    ['overview.get', {}],
    ['storage.get', {}],
  ],
  '/users': [['users.list', { limit: 50 }]],
  '/conversations': [['explorer.conversations', { limit: 50 }]],
  '/live': [
    ['live.nodes', {}],
    ['live.sockets', { limit: 50 }],
  ],
  '/calls': [['calls.list', { limit: 50 }]],
  '/logs': [['logs.list', { limit: 50, caller: 'app' }]],
  '/webhooks': [
    ['webhooks.list', { limit: 50 }],
    ['hooks.list', {}],
  ],
  '/push': [['push.listCredentials', {}]],
  '/storage': [['storage.get', {}]],
  '/keys': [['keys.list', { limit: 100 }]],
};
