import { limits } from '@parley/protocol';
import { createBatcher } from '../../platform/flow/batcher.ts';
import { enqueue } from '../../platform/jobs/jobs.ts';
import type { Logger } from '../../platform/logging.ts';
import { createPeriodic } from '../../platform/flow/periodic.ts';
import type { Periodic } from '../../platform/flow/periodic.ts';
import type { Db } from '../../platform/postgres/db.ts';
import type { PresenceRegistry } from '../../platform/presence/port.ts';
import type { ClosedSession } from '../context.ts';
import { callQueue } from './jobs.ts';
import type { CallJob } from './jobs.ts';

/**
 * Participants whose socket closed. The closing is stored with its time, and a job checks 30 s later whether the
 * participant came back (calls#gone). A closed socket that was not reported is found by looking every 30 s.
 *
 * A participant who has not named a socket, such as a caller who has not joined yet, may have closed any of them: each
 * closing counts anew, and the job asks whether the user has another.
 */

const lookMs = 30_000;
const lookMost = 1_000;

export interface GoneSockets extends Periodic {
  closed(session: ClosedSession): void;
}

export function createGoneSockets(options: {
  db: Db;
  presence: Pick<PresenceRegistry, 'connected'>;
  logger: Logger;
}): GoneSockets {
  const { db, presence, logger } = options;

  async function note(closed: readonly ClosedSession[]): Promise<void> {
    await db.tx(async (tx) => {
      const gone = await tx.query<{
        env: number;
        call: number;
        usr: number;
        session: string | null;
        at: string;
      }>(
        `UPDATE call_participants p SET gone_at = clock_timestamp()
         FROM unnest($1::int[], $2::bigint[], $3::text[]) s(env, usr, session)
         WHERE p.env = s.env AND p.usr = s.usr AND p.state IN ('joining', 'joined')
           AND (p.session IS NULL OR (p.session = s.session AND p.gone_at IS NULL))
         RETURNING p.env, p.call, p.usr, p.session, p.gone_at AS at`,
        [closed.map((c) => c.env), closed.map((c) => c.user), closed.map((c) => c.session)],
      );
      for (const { env, call, usr, session, at } of gone)
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
    const here = await db.query<ClosedSession>(
      `SELECT env, usr AS user, session FROM call_participants
       WHERE state IN ('joining', 'joined') AND gone_at IS NULL AND session IS NOT NULL LIMIT ${lookMost}`,
    );
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
