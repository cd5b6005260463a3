import type { Call, CallEndReason, CallSource } from '@parley/protocol';
import { createBatcher } from '../../platform/flow/batcher.ts';
import type { PresenceRegistry, UserRef } from '../../platform/presence/port.ts';
import type { Confirmation, Services } from '../context.ts';
import type { Platform } from '../platform.ts';
import { sendQueue } from '../push/notify.ts';
import { createDisconnectWatch } from './disconnected.ts';
import { createMediaFailover, evacuate } from './media-failover.ts';
import { createCallWorker } from './jobs.ts';
import { createMediaLink } from './media-link.ts';
import { createMediaNode } from './media-node.ts';
import type { MediaRequest, MediaSeat } from '../media-request.ts';
import { noteReached } from './sql.ts';
import { iceServers } from './turn.ts';

declare module '../context.ts' {
  interface Services {
    calls: ReturnType<typeof createCallService>['services'];
  }
}

/** A part of the service that needs the others. */
export interface CallPart {
  start(services: Services): unknown;
  stop(): Promise<unknown>;
}

export function createCallService(options: Platform & { presence: PresenceRegistry }) {
  const { config, db, node, clock, logger, presence, work, metrics } = options;
  const link = createMediaLink(options);
  const mediaNode = createMediaNode({
    ...options,
    link,
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
  /** What the operations on calls use. */
  const services = {
    /** Tells which users have a socket. */
    connected: (refs: readonly UserRef[]): Promise<boolean[]> => presence.connected(refs),
    /** Count calls for /metrics; to be called after the commit. */
    started: (kind: Call['kind']): void => started.inc({ kind }),
    ended: (reason: CallEndReason): void => ended.inc({ reason }),
    /** Must be called after pushes were queued. */
    pushQueued: () => work.raise(sendQueue.name),
    iceServers: (user: number, callId: string) => iceServers(config.turn, { user, callId }, clock.now()),
    /** Asks the media node of a call. */
    ask: link.ask,
    media: {
      /** The call is over: its node forgets it. */
      close: (to: string, call: number): void => tell(to, { method: 'close', env: 0, call, user: 0 }),
      /** Ends the user's media, even if the media node has not noticed yet that the user left. */
      drop: (to: string, seat: MediaSeat): void => tell(to, { method: 'drop', ...seat }),
      /** Returns false if the user is not connected to media. */
      mute: async (to: string, seat: MediaSeat, source: CallSource): Promise<boolean> =>
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
