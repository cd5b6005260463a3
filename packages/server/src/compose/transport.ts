import type { IncomingMessage } from 'node:http';
import { dashboardApp } from '@parley/dashboard';
import { docsApp } from '@parley/docs';
import { createPlayground } from '@parley/playground';
import { operationList } from '@parley/protocol';
import { createSessions } from '../features/accounts/authenticate.ts';
import { handlers } from '../features/handlers.ts';
import { createAuthenticator } from '../features/tenancy/authenticate.ts';
import { demoEnvironment } from '../features/tenancy/sql/environments.ts';
import { ConnectionAcceptor } from '../platform/connection-acceptor.ts';
import { connectionsFor, descriptorLimit } from '../platform/descriptors.ts';
import { processPressure } from '../platform/pressure.ts';
import { createReadiness } from '../readiness.ts';
import { Gateway } from '../transport/gateway/gateway.ts';
import { networkOf } from '../platform/address.ts';
import { documentPages } from '../transport/rest/documents.ts';
import { createRest } from '../transport/rest/server.ts';
import { isFromThisMachine, isLoopbackOrigin } from '../transport/this-machine.ts';
import { createTurns } from '../transport/turns.ts';
import type { Features } from './features.ts';
import type { Log } from './log.ts';
import type { Platform } from './platform.ts';
import type { Realtime } from './realtime.ts';

const elsewhere =
  'SOMEBODY ASKED FOR THE DEMO OR CAME WITH AN UNSIGNED TOKEN FROM ANOTHER MACHINE OR THROUGH A PROXY, and was refused: the environment that the first start made is for this machine only. If this service is public, set CHAT_ORIGIN and CHAT_TRUST_PROXY, and make an environment of the kind production (npm run parley -- env create). This is said once.';

/** The bindings: REST with the pages beside it, and the socket. */
export function createTransport(
  platform: Platform,
  { recorder, storeClock }: Log,
  live: Realtime,
  { services, calls, media, keyUsage }: Features,
) {
  const { config, db, clock, logger, metrics, parts } = platform;
  const { trustProxy } = config;
  // Where a proxy is known to be in front, a request from this machine is the proxy's.
  const proxied = trustProxy || (config.origin !== undefined && !isLoopbackOrigin(config.origin));
  const isLocal = (request: IncomingMessage): boolean => !proxied && isFromThisMachine(request);
  let said = false;
  const onElsewhere = (): void => {
    if (!said) logger.warn(elsewhere);
    said = true;
  };
  const demo = async (local: boolean): Promise<string | 'only here' | null> => {
    const found = await demoEnvironment(db, local);
    if (found === 'only here') onElsewhere();
    return found;
  };
  const authenticator = createAuthenticator({ ...platform, keyUsed: keyUsage.used, onElsewhere });
  const turns = createTurns(config.pool, processPressure);
  const readiness = createReadiness({ ...platform, state: () => parts.state });
  const readyValues = { ready: 1, degraded: 0.5, 'not ready': 0 };
  metrics.gauge(
    'parley_ready',
    'What /readyz answers: 1 ready, 0.5 degraded (Redis is away), 0 not ready',
    async () => readyValues[(await readiness()).status],
  );
  metrics.gauge('parley_turns_waiting', 'Operations waiting for their turn', () => turns.waiting);

  const playground = createPlayground(demo);
  const app = createRest({
    ...platform,
    services,
    handlers,
    authenticator,
    sessions: createSessions(platform),
    turns,
    recorder,
    trustProxy,
    isLocal,
    operations: config.roles.has('api') ? operationList : [],
    readiness,
    started: () => parts.state !== 'starting',
    details: (): Record<string, string> => {
      const status = calls.mediaStatus();
      return status === null ? {} : { media: status };
    },
    pages: [...documentPages(), ...playground.pages],
    apps: [dashboardApp, docsApp, playground.app],
    intercept: media.intercept,
  });

  const descriptors = descriptorLimit();
  const connections = descriptors === undefined ? Infinity : connectionsFor(descriptors);
  logger.debug({ descriptors }, `up to ${connections} connections`);
  const acceptor = new ConnectionAcceptor(app.server, {
    connections,
    logger,
    clock,
    ownerOf: ({ remoteAddress = '' }) => (trustProxy ? null : networkOf(remoteAddress)),
  });

  const gateway = new Gateway({
    ...platform,
    ...live,
    turns,
    services,
    handlers,
    authenticator,
    recorder,
    storeEpoch: storeClock.epoch,
    maxConnections: connections,
    trustProxy,
    isLocal,
    onRefused: (address) => acceptor.refused(address),
  });
  metrics.gauge('parley_sockets', 'Authenticated sockets', () => gateway.connections);
  let closed: Promise<unknown> | undefined;
  return { acceptor, app, gateway, close: () => (closed ??= Promise.all([acceptor.close(), app.close()])) };
}

export type Transport = ReturnType<typeof createTransport>;
