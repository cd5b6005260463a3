import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dashboardApp } from '@parley/dashboard';
import { playgroundPages } from '@parley/playground';
import { operationList, realtime } from '@parley/protocol';
import { listenOrigin } from './config.ts';
import type { Config, RoleName } from './config.ts';
import { createHappenings } from './compose/happenings.ts';
import { prepareStore } from './prepare.ts';
import { createReadiness } from './readiness.ts';
import type { Services, Signals } from './features/context.ts';
import { createSessions } from './features/accounts/authenticate.ts';
import { createAccounts } from './features/accounts/create.ts';
import { createAnalytics } from './features/analytics/service.ts';
import { createCallService } from './features/calls/service.ts';
import { resumeErasures } from './features/erasure/operations.ts';
import { handlers } from './features/handlers.ts';
import { createLostSweep, createSocketHistory } from './features/live/history.ts';
import { createRecorder } from './features/logs/recorder.ts';
import { committedMessages } from './features/messages/operations.ts';
import { NodeBus } from './features/node-bus.ts';
import { removeExpired } from './features/retention/retention.ts';
import { createKeyUsage } from './features/tenancy/key-usage.ts';
import { createAuthenticator } from './features/tenancy/authenticate.ts';
import { removeEnded } from './features/retention/ended.ts';
import { demoEnvironment } from './features/tenancy/environments.ts';
import type { Bootstrapped } from './features/accounts/bootstrap.ts';
import { tellOwners } from './features/plans/notices.ts';
import { createPlanTable } from './features/plans/table.ts';
import { createPushService } from './features/push/service.ts';
import { createStorageService } from './features/storage/service.ts';
import { createSyncer } from './features/sync/operations.ts';
import { createSharing } from './features/users/sharing.ts';
import { createMediaService } from './features/uploads/media.ts';
import { createWebhookService } from './features/webhooks/service.ts';
import { logConnections, logSettings } from './log/append.ts';
import { ConversationLog } from './log/conversation-log.ts';
import { createDoubts } from './log/doubts.ts';
import { createStoreClock } from './log/store-clock.ts';
import { createIds, systemTimers } from './platform/clock.ts';
import type { Clock, RandomBytes, Timers } from './platform/clock.ts';
import { connectionsFor, descriptorLimit } from './platform/descriptors.ts';
import { backlog, ConnectionAcceptor } from './platform/connection-acceptor.ts';
import { createOutbox } from './platform/jobs/outbox.ts';
import { createWorkSignal } from './platform/jobs/wake.ts';
import type { Logger } from './platform/logging.ts';
import { createMetrics, serveMetrics } from './platform/metrics.ts';
import { createParts } from './platform/parts.ts';
import type { Part, PartList } from './platform/parts.ts';
import { PgDb } from './platform/postgres/db.ts';
import type { Store } from './platform/postgres/store.ts';
import { createResolver } from './platform/outbound/resolver.ts';
import { createPeers } from './platform/peers.ts';
import { processPressure } from './platform/pressure.ts';
import { version } from './platform/version.ts';
import { createVault, parseMasterKey } from './platform/secrets.ts';
import { createPeriodic } from './platform/periodic.ts';
import { Gateway } from './transport/gateway/gateway.ts';
import { Hub } from './transport/gateway/hub.ts';
import { LiveSockets } from './transport/gateway/live-sockets.ts';
import { Presence } from './transport/gateway/presence.ts';
import { routeSources } from './transport/gateway/route-sources.ts';
import type { Session } from './transport/gateway/session.ts';
import { Writer } from './transport/gateway/writer.ts';
import { Tracing } from './transport/gateway/tracing.ts';
import { docsRoutes } from './transport/rest/docs-page/index.ts';
import { addressKey } from './transport/limits.ts';
import { isFromThisMachine, isLoopbackOrigin } from './transport/this-machine.ts';
import { createTurns } from './transport/turns.ts';
import { createRest } from './transport/rest/server.ts';

export interface ServiceOptions {
  config: Config;
  store: Store;
  logger: Logger;
  clock: Clock;
  /** The timers of sockets. Batches, commits and writes always use the real ones. */
  timers?: Timers;
  /** A number from 0 up to but not including 1, for jitter. */
  random: () => number;
  /** Random bytes for ids, keys and secrets. */
  randomBytes: RandomBytes;
  /** Milliseconds that clients get to leave when the service stops. */
  drainMs?: number;
  /** Migrates the store although processes of earlier versions serve. */
  force?: boolean;
  /** What the plans allow. */
  plans?: Services['plans'];
  /** What the processes of the service share. */
  peers?: typeof createPeers;
}

export interface Service {
  port: number;
  /** The services that the operations of this process get. */
  services: Services;
  /** What the first start created; null if the store was not empty. */
  first: Bootstrapped | null;
  /** The environments in which anybody can be anybody. */
  open: string[];
  stop(): Promise<void>;
  /** Stops without waiting for sockets: always, or only if all of them come from this machine. */
  hurry(when: 'always' | 'all are local'): void;
}

const sweepMs = 10 * 60_000;
const endedMs = 60_000;
/** Milliseconds; longer than the longest statement takes, and than the slowest request body takes to arrive. */
const requestsStopMs = 65_000;
/** Milliseconds after the drain, for close handshakes, pending marks and presence. */
const gatewayStopMs = 15_000;

const elsewhere =
  'SOMEBODY ASKED FOR THE DEMO OR CAME WITH AN UNSIGNED TOKEN FROM ANOTHER MACHINE OR THROUGH A PROXY, and was refused: the environment that the first start made is for this machine only. If this service is public, set CHAT_ORIGIN and CHAT_TRUST_PROXY, and make an environment of the kind production (npm run parley -- env create). This is said once.';

function once(run: () => void): () => void {
  let done = false;
  return () => {
    if (!done) run();
    done = true;
  };
}

interface Running {
  start(): unknown;
  stop(): unknown;
}

/** A part that is one object's start and stop. */
const part = (name: string, running: Running, roles?: readonly RoleName[]): Part<RoleName> => ({
  name,
  start: () => running.start(),
  stop: () => running.stop(),
  ...(roles && { roles }),
});

/** Chooses the adapters, and assembles the parts in the order in which they start. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, store, logger, clock, random } = options;
  const { timers = systemTimers, drainMs = realtime.drainMs } = options;
  const planTable = createPlanTable(config.plans, logger, options.plans);
  const { plans } = planTable;
  const ids = createIds(clock, options.randomBytes);
  const metrics = createMetrics();
  // The error of a lost connection has the whole client as a field, so only its text is logged.
  const onError = (error: Error, what: string) =>
    logger.warn({ part: 'postgres', reason: error.message, stack: error.stack }, what);
  const db = new PgDb(store.connection, { max: config.pool, onError });
  const logDb = new PgDb(store.connection, { max: logConnections, onError, settings: logSettings });
  if (config.masterKey) parseMasterKey(config.masterKey);
  let masterKey: Uint8Array | undefined;
  const vault = createVault(() => {
    if (!masterKey) throw new Error('the master key is read when the store is there');
    return masterKey;
  });

  const node = ids.secret(12);
  const peers = (options.peers ?? createPeers)(config.redisUrl, {
    ...{ node, clock, logger },
    graceMs: realtime.presenceGraceMs,
  });
  const { registry, limiter } = peers;
  const bus = new NodeBus(peers.bus);
  const retentionMs = (env: number) => storage.retention.msOf(env);
  const hub = new Hub({ bus, timers, logger, ...routeSources(db, retentionMs, clock) });
  const presence = new Presence({ registry, bus, db, sharing: createSharing(db), clock, logger });

  const writer = new Writer<Session>(systemTimers, (session) => {
    logger.info({ session: session.id }, 'a socket could not keep up and was cut off');
    session.closeCode ||= 1013;
    session.ws.terminate();
  });
  const tracing = new Tracing({ bus, hub, node, clock, timers, ids });
  const sockets = new LiveSockets(hub, presence, logger);
  const signals: Signals = {
    userOut: (_env, user, code) => gateway.userOut(user, code),
    sessionOut: (on, session) => gateway.sessionOut(on, session),
    receipt: (mark) => gateway.receipt(mark),
  };
  const history = createSocketHistory({
    ...{ db, clock, logger, node, version, roles: [...config.roles] },
    open: () => gateway.open,
  });
  const lostSweep = createLostSweep(db, logger);
  const recorder = createRecorder({ db, clock, logger, metrics, keep: config.requestLog });
  const log = new ConversationLog({
    db: logDb,
    publish: (event) => {
      if (event.e === 'message.new') recorder.message(event.env);
      hub.publish(event);
    },
    onBatch: (size, ms) => {
      metrics.commitSize.observe(size);
      metrics.commitSeconds.observe(ms / 1000);
    },
    onCommit: () => outbox.wake(),
    onDoubt: (some) => doubts.add(some),
  });
  const doubts = createDoubts({
    ...{ db, timers, logger },
    messages: (some) => committedMessages(db, some),
    publish: (event) => log.publish(event),
  });
  const work = createWorkSignal({ db, connection: store.connection, logger });
  const names = createResolver({ now: () => clock.monotonic(), servers: config.dnsServers });
  const outgoing = {
    config,
    connection: store.connection,
    names,
    onError,
    vault,
    clock,
    logger,
    metrics,
    random,
    work,
    recorder,
  };
  const push = createPushService({ ...outgoing, presence: registry, wakeOutbox: () => outbox.wake() });
  sockets.onLost = (socket) => push.lost(socket);
  const webhooks = createWebhookService({ ...outgoing, db, ids });
  const outbox = createOutbox({ consumers: [webhooks.consumer, push.consumer], work, logger });
  const storage = createStorageService({
    ...outgoing,
    ...{
      db,
      limiter,
      node,
      log,
      timers,
      randomBytes: options.randomBytes,
      mails: () => accounts.services.mails,
    },
  });
  const media = createMediaService({ config, db, clock, ids, vault, logger, names });
  const calls = createCallService({
    ...{ config, db, bus, node, clock, logger, work, metrics },
    presence: registry,
  });
  const accounts = createAccounts({
    ...{ config, db, clock, ids, vault, limiter, logger },
    listening: () => listenOrigin({ host: config.host, port: address().port }),
  });
  const analytics = createAnalytics({
    ...{ db, clock, logger, plans },
    tellOwners: async () => void (await tellOwners(db, plans, accounts.services.mails, logger)),
  });
  const services: Services = {
    clock,
    ids,
    vault,
    log,
    media,
    webhooks,
    push,
    syncer: createSyncer(db),
    signals,
    sockets,
    traces: tracing,
    calls: calls.services,
    accounts: accounts.services,
    analytics,
    connections: (env) => presence.connections(env),
    linkOrigin: accounts.services.linkOrigin,
    plans,
    storage,
    happenings: createHappenings({ clock, log, vault, sockets, calls: calls.services, media }),
  };
  metrics.gauge('parley_pool_connections', 'Open connections to PostgreSQL', () => db.pool.totalCount);
  metrics.gauge('parley_pool_waiting', 'Requests waiting for a connection', () => db.pool.waitingCount);
  metrics.gauge('parley_commit_waiting', 'Messages waiting for the next group commit', () => log.waiting);

  const readiness = createReadiness({ db, logDb, peers, state: () => parts.state });

  const descriptors = descriptorLimit();
  const connections = descriptors === undefined ? Infinity : connectionsFor(descriptors);
  logger.info({ descriptors, connections }, 'so many connections fit');

  const storeClock = createStoreClock({ db, logger, onRestored: () => gateway.restart() });
  // Where a proxy is known to be in front, a request from this machine is the proxy's.
  const proxied = config.trustProxy || (config.origin !== undefined && !isLoopbackOrigin(config.origin));
  const isLocal = (request: IncomingMessage): boolean => !proxied && isFromThisMachine(request);
  const tellElsewhere = once(() => logger.warn(elsewhere));
  const demo = async (local: boolean): Promise<string | 'only here' | null> => {
    const found = await demoEnvironment(db, local);
    if (found === 'only here') tellElsewhere();
    return found;
  };
  const keyUsage = createKeyUsage({ db, clock, logger });
  const authenticator = createAuthenticator({
    ...{ db, vault, clock, limiter, keyUsed: keyUsage.used },
    onElsewhere: () => tellElsewhere(),
  });
  const turns = createTurns(config.pool, processPressure);
  metrics.gauge('parley_turns_waiting', 'Operations waiting for their turn', () => turns.waiting);
  const gateway = new Gateway({
    ...{
      turns,
      db,
      services,
      handlers,
      authenticator,
      limiter,
      bus,
      hub,
      presence,
      sockets,
      writer,
      node,
      logger,
      random,
      recorder,
      history,
      tracing,
    },
    timers,
    storeEpoch: storeClock.epoch,
    maxConnections: connections,
    trustProxy: config.trustProxy,
    isLocal,
    onRefused: (address) => acceptor.refused(address),
  });
  metrics.gauge('parley_sockets', 'Authenticated sockets', () => gateway.connections);
  metrics.gauge('parley_routes', 'Conversations with a live member here', () => hub.routeCount);

  const app = createRest({
    db,
    services,
    handlers,
    authenticator,
    sessions: createSessions({ db, clock }),
    limiter,
    turns,
    logger,
    metrics,
    recorder,
    ...{ trustProxy: config.trustProxy, isLocal },
    operations: config.roles.has('api') ? operationList : [],
    readiness,
    started: () => parts.state !== 'starting',
    details: (): Record<string, string> => {
      const media = calls.mediaStatus();
      return media === null ? {} : { media };
    },
    pages: [...docsRoutes(), ...playgroundPages(demo)],
    apps: [dashboardApp],
    intercept: media.intercept,
  });
  const acceptor = new ConnectionAcceptor(app.server, {
    connections,
    logger,
    clock,
    ownerOf: ({ remoteAddress = '' }) => (config.trustProxy ? null : addressKey(remoteAddress)),
  });
  const address = (): AddressInfo => app.server.address() as AddressInfo;
  let closed: PromiseLike<void> | undefined;
  const close = (): PromiseLike<void> => (closed ??= app.close());

  const sweeper = createPeriodic(sweepMs, logger, 'sweep', async () => {
    const removed = await removeExpired(db, config.eventRetentionMs);
    const erasures = await resumeErasures({ db, services });
    logger.debug({ removed, erasures }, 'sweep');
  });

  const ender = createPeriodic(endedMs, logger, 'removal of ended environments', async () => {
    const environments = await removeEnded(db);
    if (environments > 0) logger.info({ environments }, 'removed the data of ended environments');
  });

  let prepared: Awaited<ReturnType<typeof prepareStore>> = { first: null, open: [] };
  let closeMetrics = (): void => undefined;
  const worker = ['worker'] as const;
  // Health is answered before the store can be reached. When stopping, sockets drain first, then requests are
  // answered, then the work they left is done, and connections close last.
  const list: PartList<RoleName> = [
    { name: 'connections', stop: () => Promise.all([db.close(), logDb.close()]) },
    { name: 'peers', stop: () => peers.close() },
    { name: 'names', stop: () => names.close() },
    part('plans', planTable),
    {
      name: 'metrics',
      start: async () => {
        if (config.metricsPort !== undefined)
          closeMetrics = await serveMetrics(metrics.registry, config.metricsHost, config.metricsPort);
      },
      stop: () => closeMetrics(),
    },
    [
      { name: 'connections of webhooks', stop: () => webhooks.close() },
      { name: 'connections of push', stop: () => push.close() },
      { name: 'connections of storage', stop: () => storage.close() },
    ],
    {
      name: 'port',
      start: () => app.listen({ host: config.host, port: config.port, backlog }),
      stop: close,
    },
    {
      name: 'store',
      start: async () => {
        prepared = await prepareStore({
          ...{ store, db, services, config, logger, force: options.force ?? false },
          onMasterKey: (key) => (masterKey = key),
        });
      },
    },
    part('history of sockets', history),
    part('request log', recorder),
    part('clock of the store', storeClock),
    { name: 'media', start: () => media.open(address().port), stop: () => media.close() },
    part('counting', analytics.flushing),
    part('last use of keys', keyUsage),
    [
      part('accounts', accounts, worker),
      part('lost nodes', lostSweep, worker),
      part('analytics', analytics.folding, worker),
      part('filling of analytics', analytics.filling, worker),
      part('notices of plans', analytics.notices, worker),
      part('sweep', sweeper, worker),
      part('ended environments', ender, worker),
      part('media clean-up', media, worker),
      part('webhooks', webhooks, worker),
      part('push', push, worker),
      part('sinks', storage, worker),
      {
        name: 'calls',
        roles: worker,
        start: () => calls.later.start(services),
        stop: () => calls.later.stop(),
      },
      {
        name: 'sockets of calls',
        start: () => calls.sockets.start(services),
        stop: () => calls.sockets.stop(),
      },
    ],
    {
      // Stops before the workers, whose sweep could then no longer move its calls.
      name: 'media of calls',
      roles: ['media'],
      start: () => calls.media.start(services),
      stop: () => calls.media.stop(),
    },
    [part('outbox', outbox, worker), part('work signal', work, worker)],
    { name: 'log', stop: () => log.idle() },
    { name: 'what was left for later', stop: () => accounts.idle() },
    { name: 'requests', stop: close, stopMs: requestsStopMs },
    {
      // Without sockets of its own it still relays the receipts of requests.
      name: 'gateway',
      start: () => (config.roles.has('gateway') ? gateway.start(app.server) : undefined),
      stop: () => gateway.drain(drainMs),
      stopMs: drainMs + gatewayStopMs,
    },
  ];
  const parts = createParts(list, config.roles, logger);
  await parts.start();
  return {
    port: address().port,
    services,
    ...prepared,
    stop: () => parts.stop(),
    hurry: (when) => gateway.hurry(when),
  };
}
