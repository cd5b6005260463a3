import type { Shop } from './scene.ts';

/** Every page: its name, its address after the environment, and a text that stands there once it is loaded. */
export const pages: [name: string, path: (shop: Shop) => string, shows: (shop: Shop) => string][] = [
  ['overview', () => '', () => 'Said and heard'],
  ['users', () => '/users', () => 'Alice Adler'],
  ['user', () => '/users/alice', () => 'Support: order 4711'],
  ['conversations', () => '/conversations', () => 'Alice Adler and Bob Brandt'],
  ['members', (shop) => `/conversations/${shop.conversation}`, () => 'Read up to'],
  [
    'messages',
    (shop) => `/conversations/${shop.conversation}?view=messages`,
    () => 'my parcel has not arrived',
  ],
  ['events', (shop) => `/conversations/${shop.conversation}?view=events`, () => 'message.updated'],
  ['live', () => '/live', () => 'Open since'],
  ['users by name', () => '/users?namePrefix=car', () => 'Carla Costa'],
  ['trace', () => '/trace?userId=alice', () => 'Follow alice'],
  ['delivery, not asked yet', () => '/delivery', () => 'Which message, and for whom?'],
  ['delivery', (shop) => `/delivery?messageId=${shop.message}&userId=alice`, () => 'What happened'],
  ['logs', () => '/logs', () => 'messages.send'],
  ['logs of failures', () => '/logs?status=error&kind=webhook', () => 'webhook.test'],
  ['calls', () => '/calls', () => 'Video call by Carla'],
  ['call', (shop) => `/calls/${shop.call}`, () => 'Started by'],
  ['analytics', () => '/analytics', () => 'Who writes most'],
  ['analytics by hour', () => '/analytics?range=1d&chart=requests', () => 'failed (5xx)'],
  ['usage', () => '/usage', () => 'Active users this month'],
  ['webhooks', () => '/webhooks', () => 'enabled'],
  ['webhook', (shop) => `/webhooks/${shop.webhook}`, () => 'webhook.test'],
  ['push', () => '/push', () => 'No provider is set up'],
  ['storage', () => '/storage', () => 'Where history is kept'],
  ['keys', () => '/keys', () => 'Revoke'],
  ['audit', () => '/audit', () => 'environments.create'],
  ['team', () => '/team', () => 'owner@example.com'],
  ['settings', () => '/settings', () => 'Name and rules'],
  ['account', () => '/../account', () => 'Where you are signed in'],
  ['new environment', () => '/../new-environment', () => 'Only signed tokens'],
];

