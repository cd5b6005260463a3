import type { AddressInfo } from 'node:net';
import type { RoleName } from '../config.ts';
import type { CallPart } from '../features/calls/service.ts';
import { systemTimers } from '../platform/clock.ts';
import { createMemoryKeeper } from '../platform/memory.ts';
import { serveMetrics } from '../platform/metrics.ts';
import type { Part, PartList } from '../platform/parts.ts';
import type { Features } from './features.ts';
import type { Log } from './log.ts';
import type { Platform } from './platform.ts';
import type { Realtime } from './realtime.ts';
import type { Transport } from './transport.ts';

/** Milliseconds; longer than the longest statement takes, and than the slowest request body takes to arrive. */
const requestsStopMs = 65_000;
/** Milliseconds after the drain, for close handshakes, pending marks and presence. */
const gatewayStopMs = 15_000;

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

const worker = ['worker'] as const;

function metricsServer({ config, metrics }: Platform): Running {
  let close = (): void => undefined;
  return {
    start: async () => {
      if (config.metricsPort !== undefined)
        close = await serveMetrics(metrics.registry, config.metricsHost, config.metricsPort);
    },
    stop: () => close(),
  };
}

/**
 * The parts in the order in which they start. Health is answered before the store can be reached. When stopping,
 * sockets drain first, then requests are answered, then the work they left is done, and connections close last.
 */
export function listParts(
  platform: Platform,
  { log, recorder, storeClock }: Log,
  { history }: Realtime,
  features: Features,
  { acceptor, app, close, gateway }: Transport,
  more: { prepare: () => Promise<void>; drainMs: number },
): PartList<RoleName> {
  const { config, db, logDb, peers, names, port } = platform;
  const { services, accounts, analytics, calls, media, push, reactions, reports, storage, webhooks } =
    features;
  const ofCalls = (running: CallPart): Running => ({
    start: () => running.start(services),
    stop: () => running.stop(),
  });
  return [
    { name: 'connections', stop: () => Promise.all([db.close(), logDb.close()]) },
    { name: 'peers', stop: () => peers.close() },
    { name: 'names', stop: () => names.close() },
    part('plans', features.planTable),
    part('memory', createMemoryKeeper(systemTimers)),
    part('metrics', metricsServer(platform)),
    [
      { name: 'connections of webhooks', stop: () => webhooks.close() },
      { name: 'connections of hooks', stop: () => features.hooks.close() },
      { name: 'connections of push', stop: () => push.close() },
      { name: 'connections of storage', stop: () => storage.close() },
    ],
    {
      name: 'port',
      start: async () => {
        await acceptor.listen(config.host, config.port, (how) => app.listen(how));
        port.set((app.server.address() as AddressInfo).port);
      },
      stop: close,
    },
    { name: 'store', start: more.prepare },
    part('history of sockets', history),
    part('request log', recorder),
    part('clock of the store', storeClock),
    { name: 'media', start: () => media.open(port.get()), stop: () => media.close() },
    part('counting', analytics.flushing),
    part('last use of keys', features.keyUsage),
    [
      part('accounts', accounts, worker),
      part('lost nodes', features.lostSweep, worker),
      part('analytics', analytics.folding, worker),
      part('filling of analytics', analytics.filling, worker),
      part('notices of plans', analytics.notices, worker),
      part('sweep', features.sweeper, worker),
      part('ended environments', features.ender, worker),
      part('media clean-up', media, worker),
      part('webhooks', webhooks, worker),
      part('push', push, worker),
      part('reports', reports, worker),
      part('events of reactions', reactions.telling, worker),
      part('sinks', storage, worker),
      part('calls', ofCalls(calls.later), worker),
      part('sockets of calls', ofCalls(calls.sockets)),
    ],
    // Stops before the workers, whose sweep could then no longer move its calls.
    part('media of calls', ofCalls(calls.media), ['media']),
    [part('outbox', features.outbox, worker), part('work signal', platform.work, worker)],
    { name: 'log', stop: () => Promise.all([log.idle(), reactions.idle()]) },
    { name: 'what was left for later', stop: () => accounts.idle() },
    { name: 'requests', stop: close, stopMs: requestsStopMs },
    {
      // Without sockets of its own it still relays the receipts of requests.
      name: 'gateway',
      start: () => (config.roles.has('gateway') ? gateway.start(app.server) : undefined),
      stop: () => gateway.drain(more.drainMs),
      stopMs: more.drainMs + gatewayStopMs,
    },
  ];
}
