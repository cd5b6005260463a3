import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { stat, statfs } from 'node:fs/promises';
import { createServer } from 'node:net';
import { availableParallelism } from 'node:os';
import { dirname, resolve } from 'node:path';
import { listenOrigin, settings } from '../../config.ts';
import type { Config } from '../../config.ts';
import { builtWorkerBinary } from '../../platform/media/worker-binary.ts';
import { nearest } from '../parse.ts';
import { ok, problem, warning } from './finding.ts';
import type { Finding } from './finding.ts';

/** What can be seen of settings, ports, media and disk without the store. */

export function lookAtSettings(config: Config, unknown: readonly string[]): Finding[] {
  const names = settings.map(({ name }) => name);
  const found = unknown.map((name) => {
    const near = nearest(name, names);
    return warning(
      'settings',
      `${name} is not a setting.`,
      near ? `Did you mean ${near}?` : 'Remove it; npm start -- --help lists the settings.',
    );
  });
  if (found.length > 0) return found;
  const where = config.databaseUrl === undefined ? 'embedded PostgreSQL' : 'the PostgreSQL of DATABASE_URL';
  return [ok('settings', `${where}, roles ${[...config.roles].join(', ')}`)];
}

export function lookAtProxy({ host, origin, trustProxy, ownMachine }: Config): Finding {
  const open = !/^(127\.|::1$|localhost$)/.test(host);
  if (trustProxy && open)
    return warning(
      'proxy',
      `X-Forwarded-For is believed, and HOST=${host} lets others connect without the proxy.`,
      'Let only the proxy reach this port (a firewall, or HOST=127.0.0.1): anybody else can pretend to have any address.',
    );
  if (trustProxy) return ok('proxy', 'X-Forwarded-For is believed, and only this machine can connect');
  if (origin !== undefined && !open)
    return warning(
      'proxy',
      'CHAT_ORIGIN is set and only this machine can connect, so a proxy is in front, but CHAT_TRUST_PROXY is not set.',
      'Set CHAT_TRUST_PROXY=true, and let the proxy set X-Forwarded-For: otherwise all clients share the proxy’s address and its limits.',
    );
  if (ownMachine)
    return ok(
      'proxy',
      'a developer’s machine: nobody else can connect. Behind a proxy, set CHAT_ORIGIN and CHAT_TRUST_PROXY',
    );
  return ok('proxy', 'clients connect directly');
}

const askMs = 3_000;

export interface Health {
  status: string;
  reason?: string;
  media?: string;
}

/** What the service of these settings says of itself; null if none answers. */
export async function askService(config: Config): Promise<Health | null> {
  try {
    const answer = await fetch(`${listenOrigin(config)}/readyz`, { signal: AbortSignal.timeout(askMs) });
    const body = (await answer.json()) as Partial<Health>;
    return typeof body.status === 'string' ? { ...body, status: body.status } : null;
  } catch {
    return null;
  }
}

type Listening = { close(): unknown } & NodeJS.EventEmitter;

/** Why nobody can listen there; null if one could. */
async function whyTaken(listen: () => Listening): Promise<string | null> {
  const server = listen();
  try {
    await once(server, 'listening');
    server.close();
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown';
  }
}
const tcp = (port: number, host: string) => whyTaken(() => createServer().listen(port, host));
const udp = (port: number, host: string) => whyTaken(() => createSocket('udp4').bind(port, host));

export async function lookAtPorts(config: Config, health: Health | null): Promise<Finding[]> {
  if (health) {
    const at = listenOrigin(config);
    if (health.status === 'ready') return [ok('ports', `the service answers at ${at}: ready`)];
    const said = `the service answers at ${at}: ${health.status}${health.reason ? `, ${health.reason}` : ''}`;
    return [
      health.status === 'degraded'
        ? warning('ports', said, 'See the areas store and redis.')
        : problem('ports', said, 'See the areas store and redis, and the log of the service.'),
    ];
  }
  const found: Finding[] = [];
  const look = async (port: number, host: string, setting: string, kind = tcp): Promise<void> => {
    const why = port === 0 ? null : await kind(port, host);
    if (why === 'EACCES')
      found.push(problem('ports', `${setting} ${port} is not for this user.`, 'Choose a port above 1023.'));
    else if (why === 'EADDRNOTAVAIL')
      found.push(
        problem('ports', `${host} is not an address of this machine.`, `Correct HOST for ${setting}.`),
      );
    else if (why !== null)
      found.push(
        problem('ports', `${setting} ${port} is used by another program.`, `Stop it, or change ${setting}.`),
      );
  };
  await look(config.port, config.host, 'PORT');
  if (config.metricsPort !== undefined)
    await look(config.metricsPort, config.metricsHost, 'CHAT_METRICS_PORT');
  if (config.roles.has('media')) {
    const { port, workers = availableParallelism() } = config.mediaNode;
    for (let i = 0; i < workers; i++)
      for (const kind of [udp, tcp]) await look(port + i, '0.0.0.0', 'CHAT_MEDIA_PORT', kind);
  }
  return found.length > 0 ? found : [ok('ports', `the service does not run; port ${config.port} is free`)];
}

export async function lookAtMedia(config: Config, health: Health | null): Promise<Finding> {
  if (!config.roles.has('media')) return ok('media', 'CHAT_ROLES leaves out calls');
  if (health?.media === 'ready') return ok('media', 'calls are ready');
  if (health?.media !== undefined)
    return warning(
      'media',
      `calls are not ready: ${health.media}`,
      'Wait for it, or see the log of the service.',
    );
  const binary = await builtWorkerBinary().catch(() => undefined);
  return binary === undefined
    ? warning(
        'media',
        'The media worker is not built yet.',
        'The first start builds it in some minutes; npm run media:build does it now. Without calls: leave media out of CHAT_ROLES.',
      )
    : ok('media', `the media worker is ${binary}`);
}

const gb = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GB`;
/** Below the first the store soon cannot write; below the second it is time to look. */
const [fullBytes, scarceBytes] = [512 * 2 ** 20, 5 * 2 ** 30];

/** The disk of the data directory, or of the nearest folder above it that exists. */
export async function lookAtDisk(dataDir: string): Promise<Finding> {
  let path = resolve(dataDir);
  while (dirname(path) !== path && !(await stat(path).catch(() => null))) path = dirname(path);
  const { bavail, bsize, blocks } = await statfs(path);
  const [free, total] = [bavail * bsize, blocks * bsize];
  const said = `${gb(free)} of ${gb(total)} free at ${path}`;
  if (free < fullBytes)
    return problem('disk', said, 'Make room now: nothing can be stored when the disk is full.');
  if (free < scarceBytes && free < total / 10)
    return warning('disk', said, 'Make room, or shorten CHAT_EVENT_RETENTION.');
  return ok('disk', said);
}
