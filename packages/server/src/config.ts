import { Resolver } from 'node:dns';
import { resolve } from 'node:path';
import { extraCodecs } from './platform/media/engine.ts';
import { mediaFromUrl } from './platform/storage/media-url.ts';
import type { MediaConfig } from './platform/storage/media-url.ts';

/**
 * Every setting, once: its place in `Config`, its name, its default, how it is read, and its description in Markdown. The type,
 * `npm start -- --help` and the table in docs/operations/settings.md follow from this table.
 */

/** Turns the text of a setting into its value; throws ConfigError if the text is not valid. */
type Read<T> = (text: string, name: string) => T;

interface Setting<T> {
  name: string;
  /** What is read without a value; undefined if the value is undefined then. */
  fallback: string | undefined;
  read: Read<T>;
  text: string;
}

export class ConfigError extends Error {}

const setting = <T>(name: string, fallback: string, read: Read<T>, text: string): Setting<T> => ({
  name,
  fallback,
  read,
  text,
});

/** A setting without a default. */
const unset = <T>(name: string, read: Read<T>, text: string): Setting<T | undefined> => ({
  name,
  fallback: undefined,
  read,
  text,
});

export const roles = ['api', 'gateway', 'worker', 'media'] as const;
export type RoleName = (typeof roles)[number];

const hour = 3_600_000;
const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

const table = {
  port: setting(
    'PORT',
    '8080',
    integer(0, 65_535),
    'REST, WebSocket at `/v1` and the pages, on this one port',
  ),
  host: setting('HOST', '127.0.0.1', text, 'Address to listen on'),
  dataDir: setting(
    'CHAT_DATA_DIR',
    './data',
    (text) => resolve(text),
    'Where the embedded PostgreSQL, the master key and managed files live',
  ),
  databaseUrl: unset('DATABASE_URL', text, 'An outside PostgreSQL (15 or newer) instead of the embedded one'),
  redisUrl: unset(
    'REDIS_URL',
    text,
    'Redis or Valkey, for more than one process; several hosts separated by commas are a cluster',
  ),
  masterKey: unset(
    'CHAT_MASTER_KEY',
    text,
    '32 bytes in base64 that seal secrets; made in the data directory when unset',
  ),
  masterKeyPrevious: unset(
    'CHAT_MASTER_KEY_PREVIOUS',
    text,
    'While the master key is rotated: the older key, which opens what it sealed ([master key](docs/operations/master-key.md))',
  ),
  masterKeyNext: unset(
    'CHAT_MASTER_KEY_NEXT',
    text,
    'While the master key is rotated: the key to come, which opens what other processes seal with it already',
  ),
  roles: setting(
    'CHAT_ROLES',
    'api,gateway,worker,media',
    (text, name) => new Set(list(roles)(text, name)),
    'What this process does: `api` answers REST, `gateway` holds sockets, `worker` sends webhooks and pushes and cleans up, `media` carries calls',
  ),
  processes: setting(
    'CHAT_PROCESSES',
    '1',
    integer(1, 256),
    'Processes behind the one port; more than 1 needs `REDIS_URL`',
  ),
  allowPrivateTargets: unset(
    'CHAT_ALLOW_PRIVATE_TARGETS',
    flag,
    '`true`: webhooks may go to private addresses and http; `false`: never. Unset: only with the embedded PostgreSQL, a loopback `HOST` and neither `CHAT_TRUST_PROXY` nor `CHAT_ORIGIN`, as on a developer’s own machine',
  ),
  egressIp: unset(
    'CHAT_EGRESS_IP',
    text,
    'The address that this service connects from, shown to customers who open a firewall for it; nothing else depends on it',
  ),
  sinkAlarm: setting(
    'CHAT_SINK_ALARM',
    '1000000',
    integer(1, 1_000_000_000),
    'Changes of one environment that may wait for its own history database before an error is logged ([storage](docs/storage.md))',
  ),
  dnsServers: setting(
    'CHAT_DNS_SERVERS',
    '',
    dnsServers,
    'Name servers for the targets that customers type, e.g. `10.0.0.53,10.0.0.54:5353`; unset: those of the system',
  ),
  media: unset(
    'CHAT_MEDIA_URL',
    media,
    'Where uploaded files go: `s3://…`, `azure://…` or `cloudinary://…` with credentials; unset: `CHAT_DATA_DIR/media` on this machine',
  ),
  mediaOrigin: unset(
    'CHAT_MEDIA_ORIGIN',
    origin,
    'Where clients reach this server for files kept on this machine, e.g. `https://files.example.com`; unset: `http://HOST:PORT`',
  ),
  bootstrap: {
    environments: unset(
      'CHAT_BOOTSTRAP_ENVIRONMENTS',
      text,
      'First start: JSON `[{ id, kind, name?, plan?, settings?, secretKey? }]`; unset: one on the plan `enterprise`, for development on this machine only where `HOST` is loopback, the store embedded and neither `CHAT_TRUST_PROXY` nor `CHAT_ORIGIN` set, otherwise for production',
    ),
    email: unset('CHAT_BOOTSTRAP_EMAIL', text, 'First start: the owner’s e-mail; unset: `owner@localhost`'),
    password: unset(
      'CHAT_BOOTSTRAP_PASSWORD',
      text,
      'First start: the owner’s password; unset: one is made and shown once',
    ),
  },
  eventRetentionMs: setting(
    'CHAT_EVENT_RETENTION',
    '7d',
    oneOf({ '24h': 24 * hour, '72h': 72 * hour, '7d': 168 * hour, '30d': 720 * hour }),
    'How long events stay readable for catching up: `24h`, `72h`, `7d` or `30d`',
  ),
  pool: setting(
    'CHAT_DATABASE_POOL',
    '10',
    integer(1, 200),
    'Connections to PostgreSQL per process, besides those of the log: two, and up to four more while other transactions lock conversations',
  ),
  logLevel: setting(
    'CHAT_LOG_LEVEL',
    'info',
    oneOf(Object.fromEntries(logLevels.map((level) => [level, level]))),
    '`fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`; logs are JSON lines on stderr',
  ),
  smtpUrl: unset(
    'CHAT_SMTP_URL',
    text,
    '`smtp://` or `smtps://` server for e-mail to owners and account holders; unset: notices are only logged, and links are shown instead',
  ),
  mailFrom: setting('CHAT_MAIL_FROM', 'Parley <parley@localhost>', text, 'Sender of e-mail'),
  metricsHost: setting(
    'CHAT_METRICS_HOST',
    '127.0.0.1',
    text,
    'Address that the metrics port listens on; give it to no public network',
  ),
  metricsPort: unset(
    'CHAT_METRICS_PORT',
    integer(1, 65_535),
    'Prometheus metrics at `/metrics` on this port; off when unset',
  ),
  requestLog: setting(
    'CHAT_REQUEST_LOG',
    'on',
    oneOf({ on: true, off: false }),
    '`off`: nothing is kept of requests, errors of sockets and attempts of webhooks; `GET /v1/logs` and the counts of the overview stay empty',
  ),
  origin: unset(
    'CHAT_ORIGIN',
    origin,
    'Where people reach the dashboard, e.g. `https://chat.example.com`: for links in e-mail and for passkeys; unset: `http://HOST:PORT`',
  ),
  signUpOpen: setting(
    'CHAT_SIGN_UP',
    'closed',
    oneOf({ closed: false, open: true }),
    '`open`: anyone may sign up, and gets an organization; needs `CHAT_SMTP_URL`',
  ),
  mediaNode: {
    port: setting(
      'CHAT_MEDIA_PORT',
      '40000',
      integer(1_024, 65_000),
      'Media of calls: UDP and TCP, one port per worker from this one upward',
    ),
    workers: unset(
      'CHAT_MEDIA_WORKERS',
      integer(1, 256),
      'Processes that carry media; unset: one per CPU core',
    ),
    announcedAddress: unset(
      'CHAT_MEDIA_ANNOUNCED_ADDRESS',
      text,
      'Where clients reach the media ports; unset: loopback, or the first address of this machine',
    ),
    codecs: setting(
      'CHAT_MEDIA_CODECS',
      '',
      (text, name) => list(extraCodecs)(text.toLowerCase(), name),
      'Video codecs beside VP8: `h264`, `vp9`, `av1`, separated by commas',
    ),
    workerSha256: unset(
      'CHAT_MEDIA_WORKER_SHA256',
      text,
      'Checksum of mediasoup’s prebuilt worker archive: it is downloaded then, instead of being built from sources',
    ),
    workerUrl: unset(
      'CHAT_MEDIA_WORKER_URL',
      folder,
      'Where mediasoup’s releases are, for machines that reach a mirror alone; unset: its own on GitHub',
    ),
  },
  turn: {
    urls: setting(
      'CHAT_TURN_URLS',
      '',
      turnUrls,
      'STUN and TURN servers for calls, e.g. `turn:turn.example.com:3478?transport=udp,turns:turn.example.com:5349`; see docs/calls.md',
    ),
    secret: unset(
      'CHAT_TURN_SECRET',
      text,
      'The secret that the TURN server shares (coturn: `static-auth-secret`)',
    ),
  },
  plans: unset(
    'CHAT_PLANS',
    text,
    'A JSON file that changes what plans allow, e.g. `{ "free": { "mauLimit": 2000 } }`; read again when it changes. See docs/plans.md',
  ),
  trustProxy: setting(
    'CHAT_TRUST_PROXY',
    'false',
    flag,
    '`true`: take the client’s address from `X-Forwarded-For`',
  ),
};

type Tree = { readonly [key: string]: Setting<unknown> | Tree };
type Values<T> = { -readonly [K in keyof T]: T[K] extends Setting<infer V> ? V : Values<T[K]> };

const isSetting = (entry: Setting<unknown> | Tree): entry is Setting<unknown> =>
  typeof entry.read === 'function';
const all = (tree: Tree): Setting<unknown>[] =>
  Object.values(tree).flatMap((entry) => (isSetting(entry) ? [entry] : all(entry)));

export const settings: readonly Setting<unknown>[] = all(table);

type Given = Values<typeof table>;
export type Config = Omit<Given, 'allowPrivateTargets' | 'bootstrap'> & {
  allowPrivateTargets: boolean;
  bootstrap: Given['bootstrap'] & { kind: 'development' | 'production' };
  /** True on a developer's machine: no setting says that others can reach it. */
  ownMachine: boolean;
};

export function readConfig(env: Record<string, string | undefined>): { config: Config; unknown: string[] } {
  const value = ({ name, fallback, read }: Setting<unknown>): unknown => {
    const text = env[name]?.trim() || fallback;
    return text === undefined ? undefined : read(text, name);
  };
  const values = (tree: Tree): Record<string, unknown> =>
    Object.fromEntries(
      Object.entries(tree).map(([key, entry]) => [key, isSetting(entry) ? value(entry) : values(entry)]),
    );
  const given = values(table) as Given;
  const loopback = /^(127\.\d+\.\d+\.\d+|::1|localhost)$/.test(given.host);
  // A proxy or a public address means that the process serves others, whatever it listens on.
  const ownMachine =
    loopback && given.databaseUrl === undefined && !given.trustProxy && given.origin === undefined;
  if (given.processes > 1 && !given.redisUrl)
    throw new ConfigError(
      'CHAT_PROCESSES above 1 needs REDIS_URL: the processes speak to each other through Redis.',
    );
  if (given.signUpOpen && given.smtpUrl === undefined)
    throw new ConfigError(
      'CHAT_SIGN_UP=open needs CHAT_SMTP_URL: people who sign up prove their address by e-mail.',
    );
  if (given.turn.urls.some((url) => url.startsWith('turn')) && given.turn.secret === undefined)
    throw new ConfigError('CHAT_TURN_URLS with a turn: server needs CHAT_TURN_SECRET.');
  const config = {
    ...given,
    allowPrivateTargets: given.allowPrivateTargets ?? ownMachine,
    bootstrap: { ...given.bootstrap, kind: ownMachine ? ('development' as const) : ('production' as const) },
    ownMachine,
  };
  const names = new Set(settings.map((s) => s.name));
  const unknown = Object.keys(env).filter((name) => name.startsWith('CHAT_') && !names.has(name));
  return { config, unknown };
}

const wrong = (name: string, must: string, text: string): ConfigError =>
  new ConfigError(`${name} must be ${must}; it is "${text}".`);

function text(text: string): string {
  return text;
}

function integer(min: number, max: number): Read<number> {
  return (text, name) => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    throw wrong(name, `a whole number from ${min} to ${max}`, text);
  };
}

function oneOf<T>(values: Record<string, T>): Read<T> {
  return (text, name) => {
    if (Object.hasOwn(values, text)) return values[text]!;
    throw wrong(name, `one of ${Object.keys(values).join(', ')}`, text);
  };
}

function flag(text: string, name: string): boolean {
  return oneOf({ true: true, false: false })(text, name);
}

const parts = (text: string): string[] => text.split(',').flatMap((part) => part.trim() || []);

/** Known names, separated by commas. */
function list<T extends string>(known: readonly T[]): Read<T[]> {
  return (text, name) => {
    const named = parts(text);
    if (
      (text === '' || named.length > 0) &&
      named.every((part) => (known as readonly string[]).includes(part))
    )
      return named as T[];
    throw wrong(name, `of ${known.join(', ')}, separated by commas`, text);
  };
}

function turnUrls(text: string, name: string): string[] {
  const urls = parts(text);
  if (urls.every((url) => /^(stuns?|turns?):[\w.[\]:-]+(\?transport=(udp|tcp))?$/.test(url))) return urls;
  throw wrong(name, 'stun:, turn: or turns: addresses separated by commas', text);
}

function dnsServers(text: string, name: string): string[] {
  const servers = parts(text);
  try {
    new Resolver().setServers(servers);
  } catch {
    throw wrong(name, 'addresses separated by commas, each with a port or without', text);
  }
  return servers;
}

function media(url: string): MediaConfig {
  try {
    return mediaFromUrl(url);
  } catch (error) {
    throw new ConfigError((error as Error).message);
  }
}

function origin(text: string, name: string): string {
  const url = URL.parse(text);
  if (url && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`) return url.origin;
  throw wrong(name, 'an http(s) origin such as https://files.example.com', text);
}

/** An http(s) address without a slash at its end. */
function folder(text: string, name: string): string {
  const url = URL.parse(text);
  if (url && /^https?:$/.test(url.protocol)) return url.href.replace(/\/$/, '');
  throw wrong(name, 'an http(s) address', text);
}

/** The address we listen on, as a browser on this machine reaches it. */
export function listenOrigin({ host, port }: Pick<Config, 'host' | 'port'>): string {
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`;
}

export const help = (): string =>
  `npm start runs the service until SIGTERM or Ctrl-C. With npm start -- --force it migrates the store although processes of
earlier versions use it, which fail from then on. Its settings are environment variables:

${settings
  .map(({ name, fallback, text }) => {
    const shown = fallback ? ` (default ${fallback})` : '';
    return `  ${name.padEnd(28)} ${text.replaceAll('`', '').replaceAll(/\[[^\]]*\]\(([^)]*)\)/g, '$1')}${shown}`;
  })
  .join('\n')}
`;
