import type { OpenApi } from './documents.ts';

/** The pages and their order in the menu. Paths are below /docs. */

export interface Entry {
  path: string;
  title: string;
}
export interface Guide extends Entry {
  /** The Markdown file, from the root of the repository. */
  file: string;
}
export interface Group<E extends Entry = Entry> {
  title: string;
  entries: E[];
}
/** A page of the reference: the operations with these tags. */
export interface Resource extends Entry {
  tags: string[];
}

const guide = (name: string, title: string, file = `docs/guides/${name}.md`): Guide => ({
  path: `guides/${name}`,
  title,
  file,
});
const operations = (name: string, title: string): Guide => ({
  path: `operations/${name}`,
  title,
  file: `docs/operations/${name}.md`,
});

export const quickstart: Guide = { path: '', title: 'Quickstart', file: 'docs/guides/quickstart.md' };

export const guides: Group<Guide>[] = [
  {
    title: 'Get started',
    entries: [quickstart, guide('tokens', 'User tokens', 'docs/tokens.md')],
  },
  {
    title: 'Guides',
    entries: [
      guide('conversations', 'Conversations and unread'),
      guide('polls', 'Polls'),
      guide('mentions', 'Mentions and notifications'),
      guide('moderation', 'Moderation'),
      guide('joining', 'Groups that people can join'),
      guide('offline', 'Offline and outbox'),
      guide('react', 'React kit'),
      guide('pins', 'Pins'),
      guide('uploads', 'Uploads'),
      guide('push', 'Push'),
      guide('webhooks', 'Webhooks'),
      guide('hooks', 'Before-send hook'),
      guide('calls', 'Calls'),
      guide('storage', 'Your own storage'),
      guide('operations', 'Run it yourself'),
    ],
  },
  {
    title: 'Operations',
    entries: [
      operations('deployment', 'Deployment'),
      operations('settings', 'Settings'),
      operations('sizing', 'Sizing'),
      operations('upgrades', 'Upgrades'),
      operations('backup', 'Backup'),
      operations('monitoring', 'Monitoring'),
      operations('metrics', 'Metrics'),
      operations('runbook', 'Runbook'),
      operations('security', 'Security'),
      operations('master-key', 'Master key'),
      operations('command-line', 'Command line'),
    ],
  },
];

/** Tables of limits, which are Markdown too. */
export const limits: Guide[] = [
  { path: 'reference/limits', title: 'Rate limits', file: 'docs/rate-limits.md' },
  { path: 'reference/plans', title: 'Plans', file: 'docs/plans.md' },
  { path: 'reference/upload-types', title: 'Upload types', file: 'docs/upload-types.md' },
];

export const sdks = [
  { path: 'sdk/client', title: '@parley/client', folder: 'client' },
  { path: 'sdk/react', title: '@parley/react', folder: 'react' },
  { path: 'sdk/server', title: '@parley/server-sdk', folder: 'server-sdk' },
];

export const pages = {
  webhookEvents: { path: 'reference/webhook-events', title: 'Webhook events' },
  socket: { path: 'reference/socket', title: 'Socket' },
  socketEvents: { path: 'reference/socket-events', title: 'Socket events' },
  errors: { path: 'reference/errors', title: 'Errors' },
  objects: { path: 'reference/objects', title: 'Objects' },
};

const resource = (name: string, title: string, ...tags: string[]): Resource => ({
  path: `reference/${name}`,
  title,
  tags: tags.length === 0 ? [title] : tags,
});
const known: Resource[] = [
  resource('tokens', 'Tokens'),
  resource('users', 'Users', 'Users', 'Sessions and devices'),
  resource('conversations', 'Conversations', 'Conversations', 'Read state'),
  resource('members', 'Members'),
  resource('messages', 'Messages', 'Messages', 'Edit history'),
  resource('pins', 'Pins'),
  resource('sync', 'Sync and events'),
  resource('uploads', 'Uploads', 'Uploads and attachments'),
  resource('push', 'Push', 'Push devices', 'Push credentials'),
  resource('webhooks', 'Webhooks'),
  resource('calls', 'Calls'),
  resource('analytics', 'Analytics'),
  resource('session', 'Sign-in', 'Session'),
  resource('account', 'Account'),
  resource('organizations', 'Organizations'),
  resource('environments', 'Environments and keys', 'Environments', 'Keys', 'Audit'),
  resource('storage', 'Storage'),
  resource('logs', 'Logs and diagnosis', 'Logs', 'Live', 'Diagnosis'),
  resource('health', 'Health'),
];

/** The pages of the REST reference. A tag that is in no list gets a separate page. */
export function resources({ tags, paths }: OpenApi): Group<Resource>[] {
  const placed = new Set([...known.flatMap((one) => one.tags), pages.webhookEvents.title]);
  const others = tags.filter(({ name }) => !placed.has(name)).map(({ name }) => resource(slug(name), name));
  const operations = Object.values(paths).flatMap((item) => Object.values(item));
  /** Keys and tokens cannot call any of its operations. */
  const forDashboard = (one: Resource): boolean =>
    operations
      .filter((op) => one.tags.includes(op.tags[0] ?? ''))
      .every(
        (op) => op['x-callers']?.every((caller) => caller === 'dashboard' || caller === 'anyone') === true,
      );
  const all = [...known, ...others];
  return [
    { title: 'REST', entries: all.filter((one) => !forDashboard(one)) },
    { title: 'Dashboard API', entries: all.filter(forDashboard) },
  ];
}

const slug = (title: string): string => title.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');

/** The whole menu. */
export function menu(api: OpenApi): Group[] {
  const [rest, dashboard] = resources(api);
  return [
    ...guides,
    { title: 'REST', entries: [...rest!.entries, pages.webhookEvents] },
    { title: 'Socket', entries: [pages.socket, pages.socketEvents] },
    { title: 'Errors and limits', entries: [pages.errors, ...limits, pages.objects] },
    { title: 'SDKs', entries: sdks },
    dashboard!,
  ];
}
