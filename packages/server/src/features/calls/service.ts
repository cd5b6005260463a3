import type { Config } from '../../config.ts';
import { createBatcher } from '../../platform/flow/batcher.ts';
import type { Clock } from '../../platform/clock.ts';
import type { WorkSignal } from '../../platform/jobs/wake.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { Db } from '../../platform/postgres/db.ts';
import type { PresenceRegistry } from '../../platform/presence/port.ts';
import type { Confirmation, Services } from '../context.ts';
import type { NodeBus } from '../node-bus.ts';
import { sendQueue } from '../push/notify.ts';
import { createDisconnectWatch } from './disconnected.ts';
import { createMediaFailover, evacuate } from './media-failover.ts';
import { createCallWorker } from './jobs.ts';
import { createMediaLink } from './media-link.ts';
import { createMediaNode } from './media-node.ts';
import type { MediaRequest } from '../media-request.ts';
import { noteReached } from './sql.ts';
import type { CallServices } from './call-services.ts';
import { iceServers } from './turn.ts';

/** A part of the service that needs the others. */
export interface CallPart {
  start(services: Services): unknown;
  stop(): Promise<unknown>;
}

export function createCallService(options: {
  config: Pick<Config, 'turn' | 'mediaNode' | 'host' | 'roles'>;
  db: Db;
  bus: NodeBus;
  node: string;
  clock: Clock;
  logger: Logger;
  presence: PresenceRegistry;
  work: WorkSignal;
  metrics: Metrics;
}) {
  const { config, db, bus, node, clock, logger, presence, work, metrics } = options;
  const link = createMediaLink({ bus, node });
  const mediaNode = createMediaNode({
    config,
    node,
    db,
    link,
    clock,
    logger,
    metrics,
    evacuate: () => evacuate({ db, services: running }, node),
  });
  const started = metrics.counter('parley_calls_started_total', 'Calls that were started, by kind', ['kind']);
  const ended = metrics.counter('parley_calls_ended_total', 'Calls that ended, by reason', ['reason']);
  const disconnects = createDisconnectWatch({ db, presence, logger });
  let running: Services;
  let stopSockets: (() => void)[] = [];
  const { add: reached } = createBatcher<Confirmation, void>({
    maxBatch: 500,
    maxWaiting: 10_000,
    run: async (confirmed) => {
      await noteReached(db, confirmed);
      return confirmed.map(() => undefined);
    },
  });
  let parts: { start(): unknown; stop(): Promise<void> }[] = [];
  /** If the message does not arrive, the node finds out by itself. */
  const tell = (to: string, request: MediaRequest): void => {
    link.ask(to, request).catch(() => undefined);
  };
  const services: CallServices = {
    connected: (refs) => presence.connected(refs),
    started: (kind) => started.inc({ kind }),
    ended: (reason) => ended.inc({ reason }),
    pushQueued: () => work.raise(sendQueue.name),
    iceServers: (user, callId) => iceServers(config.turn, { user, callId }, clock.now()),
    ask: link.ask,
    media: {
      close: (to, call) => tell(to, { method: 'close', env: 0, call, user: 0 }),
      drop: (to, seat) => tell(to, { method: 'drop', ...seat }),
      mute: async (to, seat, source) =>
        (await link.ask(to, { method: 'mute', ...seat, d: { source } })) === true,
    },
  };
  /** Follows sockets that close and answers of media nodes; runs in every process, once the store is ready. */
  const sockets: CallPart = {
    start: async (given) => {
      running = given;
      stopSockets = [
        given.sockets.onSessionClosed((session) => disconnects.closed(session)),
        // If it cannot be noted, the call is pushed although it rings.
        given.sockets.onConfirmed((confirmed) => void reached(confirmed).catch(() => undefined)),
      ];
      await link.start();
    },
    stop: () => {
      for (const stop of stopSockets) stop();
      link.stop();
      return Promise.resolve();
    },
  };
  /** Runs what is due later, in processes with the role worker. */
  const later: CallPart = {
    start: (given) => {
      const needed = { db, services: given, logger };
      parts = [createCallWorker(needed), disconnects, createMediaFailover(needed)];
      for (const part of parts) part.start();
    },
    stop: () => Promise.all(parts.map((part) => part.stop())),
  };
  return {
    services,
    /** What the media node of this process is doing; null if it is none. */
    mediaStatus: () => (config.roles.has('media') ? mediaNode.status : null),
    sockets,
    later,
    /** Carries media, in processes with the role media. */
    media: mediaNode,
  };
}
