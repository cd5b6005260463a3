import type { Config } from '../../config.ts';
import type { Clock } from '../../platform/clock.ts';
import type { WorkSignal } from '../../platform/jobs/wake.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Db } from '../../platform/postgres/db.ts';
import type { PresenceRegistry } from '../../platform/presence/port.ts';
import type { Services } from '../context.ts';
import { sendQueue } from '../push/notify.ts';
import { createGoneSockets } from './gone.ts';
import { createCallWorker } from './jobs.ts';
import type { CallServices } from './services.ts';
import { iceServers } from './turn.ts';

export interface CallService {
  services: CallServices;
  /** Hears of sockets that close: for every process that may have some, once the store is ready. */
  sockets: CallPart;
  /** Runs what is due later: for processes with the role worker. */
  later: CallPart;
}

interface CallPart {
  start(services: Services): void;
  stop(): Promise<void>;
}

export function createCallService(options: {
  config: Pick<Config, 'turn'>;
  db: Db;
  clock: Clock;
  logger: Logger;
  presence: PresenceRegistry;
  work: WorkSignal;
}): CallService {
  const { config, db, clock, logger, presence, work } = options;
  let stopSockets: (() => void) | undefined;
  let later: { stop(): Promise<void> }[] = [];
  return {
    services: {
      connected: (refs) => presence.connected(refs),
      pushQueued: () => work.raise(sendQueue.name),
      iceServers: (user, callId) => iceServers(config.turn, { user, callId }, clock.now()),
      media: {
        close: () => undefined,
        drop: () => undefined,
        mute: () => Promise.resolve(false),
      },
    },
    sockets: {
      start: (services) => {
        const gone = createGoneSockets({ db, services, logger });
        stopSockets = services.sockets.onSessionClosed((session) => gone.closed(session));
      },
      stop: () => Promise.resolve(stopSockets?.()),
    },
    later: {
      start: (services) => {
        const parts = [
          createCallWorker({ db, services, logger }),
          createGoneSockets({ db, services, logger }),
        ];
        for (const part of parts) part.start();
        later = parts;
      },
      stop: async () => {
        await Promise.all(later.map((part) => part.stop()));
      },
    },
  };
}
