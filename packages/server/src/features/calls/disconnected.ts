import { limits } from '@parley/protocol';
import { createBatcher } from '../../platform/flow/batcher.ts';
import { enqueue } from '../../platform/jobs/sql/jobs.ts';
import type { Logger } from '../../platform/logging.ts';
import { createPeriodic } from '../../platform/flow/periodic.ts';
import type { Periodic } from '../../platform/flow/periodic.ts';
import type { Db } from '../../platform/postgres/db.ts';
import type { PresenceRegistry } from '../../platform/presence/port.ts';
import type { ClosedSession } from '../context.ts';
import { callQueue } from './jobs.ts';
import type { CallJob } from './jobs.ts';
import { connectedParticipants, markDisconnected } from './sql/participants.ts';

/**
 * Participants whose socket closed. The closing is stored with its time, and a job checks 30 s later whether the
 * participant came back (calls#gone). A closed socket that was not reported is found by looking every 30 s.
 *
 * A participant who has not named a socket, such as a caller who has not joined yet, may have closed any of them: each
 * closing is stored again, and the job checks whether the user has another socket.
 */

const lookMs = 30_000;

export interface DisconnectWatch extends Periodic {
  closed(session: ClosedSession): void;
}

export function createDisconnectWatch(options: {
  db: Db;
  presence: Pick<PresenceRegistry, 'connected'>;
  logger: Logger;
}): DisconnectWatch {
  const { db, presence, logger } = options;

  async function note(closed: readonly ClosedSession[]): Promise<void> {
    await db.tx(async (tx) => {
      for (const { env, call, usr, session, at } of await markDisconnected(tx, closed))
        await enqueue(
          tx,
          callQueue,
          [{ key: env, ref: call, data: { kind: 'gone', user: usr, session, at } satisfies CallJob }],
          new Date(Date.parse(at) + limits.callGoneMs),
        );
    });
  }

  const { add } = createBatcher<ClosedSession, void>({
    maxBatch: 500,
    maxWaiting: 50_000,
    run: async (items) => {
      await note(items);
      return items.map(() => undefined);
    },
  });

  const look = createPeriodic(lookMs, logger, 'looking for gone participants', async () => {
    const here = await connectedParticipants(db);
    const connected = await presence.connected(here);
    const gone = here.filter((_, i) => !connected[i]);
    if (gone.length > 0) await note(gone);
  });

  return {
    ...look,
    // What cannot be stored now is found by looking.
    closed: (session) => void add(session).catch(() => undefined),
  };
}
