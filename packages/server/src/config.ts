import { Resolver } from 'node:dns';
import { resolve } from 'node:path';
import { extraCodecs } from './platform/media/engine.ts';
import type { ExtraCodec } from './platform/media/engine.ts';
import { mediaFromUrl } from './platform/storage/media-url.ts';
import type { MediaConfig } from './platform/storage/media-url.ts';

/**
 * Every setting, once: read here, documented from here (`npm start -- --help`, the table in README.md). Unknown CHAT_
 * settings are reported.
 */

interface Setting {
  name: string;
  /** The default; empty if there is none. */
  fallback: string;
  /** The description, in Markdown. */
  text: string;
}

const setting = (name: string, fallback: string, text: string): Setting => ({ name, fallback, text });

export const settings: readonly Setting[] = [
  setting('PORT', '8080', 'REST, WebSocket at `/v1` and the pages, on this one port'),
  setting('HOST', '127.0.0.1', 'Address to listen on'),
  setting('CHAT_DATA_DIR', './data', 'Where the embedded PostgreSQL, the master key and managed files live'),
  setting('DATABASE_URL', '', 'An outside PostgreSQL (15 or newer) instead of the embedded one'),
  setting(
    'REDIS_URL',
    '',
    'Redis or Valkey, for more than one process; several hosts separated by commas are a cluster',
  ),
  setting(
    'CHAT_MASTER_KEY',
    '',
    '32 bytes in base64 that seal secrets; made in the data directory when unset',
  ),
  setting(
    'CHAT_ROLES',
    'api,gateway,worker,media',
    'What this process does: `api` answers REST, `gateway` holds sockets, `worker` sends webhooks and pushes and cleans up, `media` carries calls',
  ),
  setting('CHAT_PROCESSES', '1', 'Processes behind the one port; more than 1 needs `REDIS_URL`'),
  setting(
    'CHAT_ALLOW_PRIVATE_TARGETS',
    '',
    '`true`: webhooks may go to private addresses and http; `false`: never. Unset: only with the embedded PostgreSQL, a loopback `HOST` and neither `CHAT_TRUST_PROXY` nor `CHAT_ORIGIN`, as on a developer’s own machine',
  ),
  setting(
    'CHAT_EGRESS_IP',
    '',
    'The address that this service connects from, shown to customers who open a firewall for it; nothing else depends on it',
  ),
  setting(
    'CHAT_SINK_ALARM',
    '1000000',
    'Changes of one environment that may wait for its own history database before an error is logged ([storage](docs/storage.md))',
  ),
  setting(
    'CHAT_DNS_SERVERS',
    '',
    'Name servers for the targets that customers type, e.g. `10.0.0.53,10.0.0.54:5353`; unset: those of the system',
  ),
  setting(
    'CHAT_MEDIA_URL',
    '',
    'Where uploaded files go: `s3://…`, `azure://…` or `cloudinary://…` with credentials; unset: `CHAT_DATA_DIR/media` on this machine',
  ),
  setting(
    'CHAT_MEDIA_ORIGIN',
    '',
    'Where clients reach this server for files kept on this machine, e.g. `https://files.example.com`; unset: `http://HOST:PORT`',
  ),
  setting(
    'CHAT_BOOTSTRAP_ENVIRONMENTS',
    '',
    'First start: JSON `[{ id, kind, name?, plan?, settings?, secretKey? }]`; unset: one on the plan `enterprise`, for development on this machine only where `HOST` is loopback, the store embedded and neither `CHAT_TRUST_PROXY` nor `CHAT_ORIGIN` set, otherwise for production',
  ),
  setting('CHAT_BOOTSTRAP_EMAIL', '', 'First start: the owner’s e-mail; unset: `owner@localhost`'),
  setting(
    'CHAT_BOOTSTRAP_PASSWORD',
    '',
    'First start: the owner’s password; unset: one is made and shown once',
  ),
  setting(
    'CHAT_EVENT_RETENTION',
    '7d',
    'How long events stay readable for catching up: `24h`, `72h`, `7d` or `30d`',
  ),
  setting(
    'CHAT_DATABASE_POOL',
    '10',
    'Connections to PostgreSQL per process, besides those of the log: two, and up to four more while other transactions lock conversations',
  ),
  setting(
    'CHAT_LOG_LEVEL',
    'info',
    '`fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`; logs are JSON lines on stderr',
  ),
  setting(
    'CHAT_SMTP_URL',
    '',
    '`smtp://` or `smtps://` server for e-mail to owners and account holders; unset: notices are only logged, and links are shown instead',
  ),
  setting('CHAT_MAIL_FROM', 'Parley <parley@localhost>', 'Sender of e-mail'),
  setting(
    'CHAT_METRICS_HOST',
    '127.0.0.1',
    'Address that the metrics port listens on; give it to no public network',
  ),
  setting('CHAT_METRICS_PORT', '', 'Prometheus metrics at `/metrics` on this port; off when unset'),
  setting(
    'CHAT_REQUEST_LOG',
    'on',
    '`off`: nothing is kept of requests, errors of sockets and attempts of webhooks; `GET /v1/logs` and the counts of the overview stay empty',
  ),
  setting(
    'CHAT_ORIGIN',
    '',
    'Where people reach the dashboard, e.g. `https://chat.example.com`: for links in e-mail and for passkeys; unset: `http://HOST:PORT`',
  ),
  setting(
    'CHAT_SIGN_UP',
    'closed',
    '`open`: strangers may make accounts, each with an organization of its own; needs `CHAT_SMTP_URL`',
  ),
  setting(
    'CHAT_MEDIA_PORT',
    '40000',
    'Media of calls: UDP and TCP, one port per worker from this one upward',
  ),
  setting('CHAT_MEDIA_WORKERS', '', 'Processes that carry media; unset: one per CPU core'),
  setting(
    'CHAT_MEDIA_ANNOUNCED_ADDRESS',
    '',
    'Where clients reach the media ports; unset: loopback, or the first address of this machine',
  ),
  setting('CHAT_MEDIA_CODECS', '', 'Video codecs beside VP8: `h264`, `vp9`, `av1`, separated by commas'),
  setting(
    'CHAT_MEDIA_WORKER_SHA256',
    '',
    'Checksum of mediasoup’s prebuilt worker archive: it is downloaded then, instead of being built from sources',
  ),
  setting(
    'CHAT_MEDIA_WORKER_URL',
    '',
    'Where mediasoup’s releases are, for machines that reach a mirror alone; unset: its own on GitHub',
  ),
  setting(
    'CHAT_TURN_URLS',
    '',
    'STUN and TURN servers for calls, e.g. `turn:turn.example.com:3478?transport=udp,turns:turn.example.com:5349`; see docs/calls.md',
  ),
  setting('CHAT_TURN_SECRET', '', 'The secret that the TURN server shares (coturn: `static-auth-secret`)'),
  setting(
    'CHAT_PLANS',
    '',
    'A JSON file that changes what plans allow, e.g. `{ "free": { "mauLimit": 2000 } }`; read again when it changes. See docs/plans.md',
  ),
  setting('CHAT_TRUST_PROXY', '', '`true`: take the client’s address from `X-Forwarded-For`'),
];

export const roles = ['api', 'gateway', 'worker', 'media'] as const;
export type RoleName = (typeof roles)[number];

export interface Config {
  port: number;
  host: string;
  dataDir: string;
  databaseUrl: string | undefined;
  redisUrl: string | undefined;
  masterKey: string | undefined;
  roles: ReadonlySet<RoleName>;
  processes: number;
  allowPrivateTargets: boolean;
  egressIp: string | undefined;
  sinkAlarm: number;
  dnsServers: readonly string[];
  media: MediaConfig | undefined;
  mediaOrigin: string | undefined;
  bootstrap: {
    environments: string | undefined;
    email: string | undefined;
    password: string | undefined;
    kind: 'development' | 'production';
  };
  /** True if it looks like a developer's machine: nothing says that others can reach it. */
  ownMachine: boolean;
  eventRetentionMs: number;
  pool: number;
  logLevel: string;
  smtpUrl: string | undefined;
  mailFrom: string;
  metricsHost: string;
  metricsPort: number | undefined;
  origin: string | undefined;
  requestLog: boolean;
  signUpOpen: boolean;
  /** The path of a file. */
  plans: string | undefined;
  trustProxy: boolean;
  turn: { urls: readonly string[]; secret: string | undefined };
  mediaNode: {
    port: number;
    workers: number | undefined;
    announcedAddress: string | undefined;
    codecs: readonly ExtraCodec[];
    workerSha256: string | undefined;
    /** Without a slash at its end. */
    workerUrl: string | undefined;
  };
}

const hour = 3_600_000;
const retentions: Record<string, number> = {
  '24h': 24 * hour,
  '72h': 72 * hour,
  '7d': 168 * hour,
  '30d': 720 * hour,
};

export class ConfigError extends Error {}

export function readConfig(env: Record<string, string | undefined>): { config: Config; unknown: string[] } {
  const get = (name: string): string | undefined => {
    const known = settings.find((s) => s.name === name)!;
    const value = env[name]?.trim();
    return value ? value : known.fallback || undefined;
  };
  const integer = (name: string, min: number, max: number): number => {
    const value = Number(get(name));
    if (!Number.isInteger(value) || value < min || value > max)
      throw new ConfigError(`${name} must be a whole number from ${min} to ${max}; it is "${get(name)}".`);
    return value;
  };
  const choice = (name: string, allowed: readonly string[]): string => {
    const value = get(name)!;
    if (!allowed.includes(value))
      throw new ConfigError(`${name} must be one of ${allowed.join(', ')}; it is "${value}".`);
    return value;
  };
  const flag = (name: string): boolean | undefined => {
    const value = get(name);
    if (value === undefined) return undefined;
    if (value !== 'true' && value !== 'false')
      throw new ConfigError(`${name} must be true or false; it is "${value}".`);
    return value === 'true';
  };
  const chosen = get('CHAT_ROLES')!
    .split(',')
    .map((r) => r.trim());
  for (const role of chosen)
    if (!(roles as readonly string[]).includes(role))
      throw new ConfigError(`CHAT_ROLES has "${role}"; the roles are ${roles.join(', ')}.`);
  const host = get('HOST')!;
  const databaseUrl = get('DATABASE_URL');
  const loopback = /^(127\.\d+\.\d+\.\d+|::1|localhost)$/.test(host);
  const trustProxy = flag('CHAT_TRUST_PROXY') ?? false;
  const publicOrigin = origin('CHAT_ORIGIN', get('CHAT_ORIGIN'));
  // Who names a proxy or a public address serves others, whatever the process listens on.
  const ownMachine = loopback && databaseUrl === undefined && !trustProxy && publicOrigin === undefined;
  const config: Config = {
    port: integer('PORT', 0, 65_535),
    host,
    dataDir: resolve(get('CHAT_DATA_DIR')!),
    databaseUrl,
    redisUrl: get('REDIS_URL'),
    masterKey: get('CHAT_MASTER_KEY'),
    roles: new Set(chosen as RoleName[]),
    processes: integer('CHAT_PROCESSES', 1, 256),
    allowPrivateTargets: flag('CHAT_ALLOW_PRIVATE_TARGETS') ?? ownMachine,
    egressIp: get('CHAT_EGRESS_IP'),
    sinkAlarm: integer('CHAT_SINK_ALARM', 1, 1_000_000_000),
    dnsServers: dnsServers(get('CHAT_DNS_SERVERS')),
    media: media(get('CHAT_MEDIA_URL')),
    mediaOrigin: origin('CHAT_MEDIA_ORIGIN', get('CHAT_MEDIA_ORIGIN')),
    bootstrap: {
      environments: get('CHAT_BOOTSTRAP_ENVIRONMENTS'),
      email: get('CHAT_BOOTSTRAP_EMAIL'),
      password: get('CHAT_BOOTSTRAP_PASSWORD'),
      kind: ownMachine ? 'development' : 'production',
    },
    ownMachine,
    eventRetentionMs: retentions[choice('CHAT_EVENT_RETENTION', Object.keys(retentions))]!,
    pool: integer('CHAT_DATABASE_POOL', 1, 200),
    logLevel: choice('CHAT_LOG_LEVEL', ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']),
    smtpUrl: get('CHAT_SMTP_URL'),
    mailFrom: get('CHAT_MAIL_FROM')!,
    metricsHost: get('CHAT_METRICS_HOST')!,
    metricsPort: get('CHAT_METRICS_PORT') === undefined ? undefined : integer('CHAT_METRICS_PORT', 1, 65_535),
    origin: publicOrigin,
    plans: get('CHAT_PLANS'),
    requestLog: choice('CHAT_REQUEST_LOG', ['on', 'off']) === 'on',
    signUpOpen: choice('CHAT_SIGN_UP', ['closed', 'open']) === 'open',
    trustProxy,
    mediaNode: {
      port: integer('CHAT_MEDIA_PORT', 1_024, 65_000),
      workers: get('CHAT_MEDIA_WORKERS') === undefined ? undefined : integer('CHAT_MEDIA_WORKERS', 1, 256),
      announcedAddress: get('CHAT_MEDIA_ANNOUNCED_ADDRESS'),
      codecs: codecs(get('CHAT_MEDIA_CODECS')),
      workerSha256: get('CHAT_MEDIA_WORKER_SHA256'),
      workerUrl: folder('CHAT_MEDIA_WORKER_URL', get('CHAT_MEDIA_WORKER_URL')),
    },
    turn: { urls: turnUrls(get('CHAT_TURN_URLS')), secret: get('CHAT_TURN_SECRET') },
  };
  if (config.processes > 1 && !config.redisUrl)
    throw new ConfigError(
      'CHAT_PROCESSES above 1 needs REDIS_URL: the processes speak to each other through Redis.',
    );
  if (config.signUpOpen && config.smtpUrl === undefined)
    throw new ConfigError('CHAT_SIGN_UP=open needs CHAT_SMTP_URL: strangers prove their address by e-mail.');
  if (config.turn.urls.some((url) => url.startsWith('turn')) && config.turn.secret === undefined)
    throw new ConfigError('CHAT_TURN_URLS with a turn: server needs CHAT_TURN_SECRET.');
  const names = new Set(settings.map((s) => s.name));
  const unknown = Object.keys(env).filter((name) => name.startsWith('CHAT_') && !names.has(name));
  return { config, unknown };
}

function codecs(text: string | undefined): ExtraCodec[] {
  const named = (text ?? '').split(',').flatMap((part) => part.trim().toLowerCase() || []);
  for (const name of named)
    if (!(extraCodecs as readonly string[]).includes(name))
      throw new ConfigError(`CHAT_MEDIA_CODECS has "${name}"; there are ${extraCodecs.join(', ')}.`);
  return named as ExtraCodec[];
}

function turnUrls(text: string | undefined): string[] {
  const urls = (text ?? '').split(',').flatMap((part) => part.trim() || []);
  for (const url of urls)
    if (!/^(stuns?|turns?):[\w.[\]:-]+(\?transport=(udp|tcp))?$/.test(url))
      throw new ConfigError(
        `CHAT_TURN_URLS must be stun:, turn: or turns: addresses separated by commas; it has "${url}".`,
      );
  return urls;
}

function dnsServers(text: string | undefined): string[] {
  const servers = (text ?? '').split(',').flatMap((part) => part.trim() || []);
  try {
    new Resolver().setServers(servers);
  } catch {
    throw new ConfigError(
      `CHAT_DNS_SERVERS must be addresses separated by commas, each with a port or without; it is "${text}".`,
    );
  }
  return servers;
}

function media(url: string | undefined): MediaConfig | undefined {
  try {
    return url === undefined ? undefined : mediaFromUrl(url);
  } catch (error) {
    throw new ConfigError((error as Error).message);
  }
}

function origin(name: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`)
    throw new ConfigError(
      `${name} must be an http(s) origin such as https://files.example.com; it is "${text}".`,
    );
  return url.origin;
}

function folder(name: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol))
    throw new ConfigError(`${name} must be an http(s) address; it is "${text}".`);
  return url.href.replace(/\/$/, '');
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
    return `  ${name.padEnd(28)} ${text.replaceAll('`', '')}${shown}`;
  })
  .join('\n')}
`;
