import { createBatcher } from '../../platform/flow/batcher.ts';
import { enqueue } from '../../platform/jobs/sql/jobs.ts';
import type { Job } from '../../platform/jobs/sql/jobs.ts';
import type { Db, Queryable } from '../../platform/postgres/db.ts';
import type { LostSocket } from '../../platform/presence/port.ts';
import { isPushedMention } from '../levels.ts';
import { connectedUsers, wants } from './plan.ts';
import type { Planned, Presence } from './plan.ts';
import { pushableUsers, undeliveredMessages } from './sql/planning.ts';

/**
 * Sockets that were found dead. Until then their users counted as connected, and got no push. Now one job looks
 * for what came since the client was last heard and was not confirmed as delivered, and pushes it if the user has
 * no other socket.
 *
 * The registry forgets a socket before its job is written. So a message is found by the job or, if it was committed
 * later, planned for a user without a socket. One that both find is pushed once: see `findSuperseded`.
 */

export const lostQueue = { name: 'push_lost', width: 20 };

/** Milliseconds before the last sign of life: what was sent then may not have arrived either. */
const marginMs = 5_000;
/** How many messages are pushed after one socket died, the latest ones. */
const mostInAll = 200;

/** Writes the jobs of lost sockets, many at once, for users who can be pushed to. */
export const createLostSockets = (db: Db, queued: () => void) =>
  createBatcher<LostSocket, void>({
    maxBatch: 500,
    maxWaiting: 50_000,
    run: async (lost) => {
      // A user whose sockets died together is looked at once, from when the first of them fell silent.
      const users = new Map<string, LostSocket>();
      for (const one of lost) {
        const key = `${one.env} ${one.user}`;
        if (one.silentMs > (users.get(key)?.silentMs ?? -1)) users.set(key, one);
      }
      const longest = [...users.values()];
      const found = await pushableUsers(db, longest, marginMs);
      await enqueue(
        db,
        lostQueue,
        found.map(({ env, usr, since }) => ({ key: env, ref: usr, data: { since } })),
      );
      if (found.length > 0) queued();
      return lost.map(() => undefined);
    },
  });

export interface Looked {
  runAt: null;
  planned: Planned[];
}

export async function lookBack(
  db: Queryable,
  presence: Presence,
  jobs: readonly Job[],
  now: number,
): Promise<Looked[]> {
  const users = jobs.map((job) => ({ env: job.key, usr: job.ref! }));
  const online = await connectedUsers(presence, users);
  const rows = await undeliveredMessages(
    db,
    jobs.map((job) => ({ env: job.key, usr: job.ref!, since: (job.data as { since: string }).since })),
    [...online],
  );
  const seen = new Set<string>();
  const isFirst = (row: { job: number; conv: number; seq: number }): boolean => {
    const key = `${users[row.job]!.usr} ${row.conv} ${row.seq}`;
    return !seen.has(key) && !!seen.add(key);
  };
  return jobs.map(({ key: env, ref }, job) => ({
    runAt: null,
    planned: rows
      .filter((row) => row.job === job && isFirst(row) && wants({ ...row, usr: ref! }, row, now))
      .slice(-mostInAll)
      .map(({ mode, conv, seq, extras }) => ({
        runAt: null,
        env,
        conv,
        seq,
        pushTo: mode === 'webhook' ? [] : [ref!],
        recipients: mode === 'webhook' ? [ref!] : [],
        mentioned: isPushedMention(extras, ref!) ? [ref!] : [],
      })),
  }));
}
