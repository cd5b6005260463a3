import { limits } from '@parley/protocol';
import { createBatcher } from '../../platform/flow/batcher.ts';
import type { Logger } from '../../platform/logging.ts';
import { createPeriodic } from '../../platform/flow/periodic.ts';
import type { Db } from '../../platform/postgres/db.ts';
import type { PresenceRegistry } from '../../platform/presence/port.ts';
import type { ClosedSession } from '../context.ts';
import { later } from './jobs.ts';
import { connectedParticipants, markDisconnected } from './sql/participants.ts';
import type { Gone } from './sql/participants.ts';

/**
 * Participants whose socket closed. The closing is stored with its time, and a job checks 30 s later whether the
 * participant came back (calls#gone). A closed socket that was not reported is found by looking every 30 s, and so is a
 * participant of an active call who never opened one.
 *
 * A participant who has not named a socket, such as a caller who has not joined yet, may have closed any of them: each
 * closing is stored again, and the job checks whether the user has another socket.
 */

const lookMs = 30_000;

export function createDisconnectWatch(options: {
  db: Db;
  presence: Pick<PresenceRegistry, 'connected'>;
  logger: Logger;
}) {
  const { db, presence, logger } = options;

  async function note(closed: readonly Gone[]): Promise<void> {
    await db.tx(async (tx) => {
      for (const { env, call, usr, session, at } of await markDisconnected(tx, closed))
        await later(tx, { env, no: call }, { kind: 'gone', user: usr, session, at }, at, limits.callGoneMs);
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
    closed: (session: ClosedSession): void => void add(session).catch(() => undefined),
  };
}
