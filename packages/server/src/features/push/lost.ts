import { createBatcher } from '../../platform/flow/batcher.ts';
import { enqueue } from '../../platform/jobs/jobs.ts';
import type { Job } from '../../platform/jobs/jobs.ts';
import { consumers } from '../../log/consumers.ts';
import type { Db, Queryable } from '../../platform/postgres/db.ts';
import type { LostSocket } from '../../platform/presence/port.ts';
import { conversationOf, membershipsOf, userOf } from '../lookups.ts';
import { pushMode } from './notify.ts';
import { connectedUsers } from './plan.ts';
import type { Planned, Presence } from './plan.ts';

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
/** How many messages are pushed after one socket died, the latest ones: of each conversation, and in all. */
const mostOfOne = 100;
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
      const found = await db.query<{ env: number; usr: number; since: string }>(
        `SELECT u.env, u.usr, clock_timestamp() - (u.ms + ${marginMs}) * interval '1 millisecond' AS since
         FROM unnest($1::int[], $2::bigint[], $3::float8[]) u(env, usr, ms)
         JOIN environments e ON e.no = u.env AND e.listeners & ${consumers.push.bit} <> 0
         WHERE ${pushMode('e')} = 'webhook' OR EXISTS (SELECT 1 FROM push_devices d WHERE d.env = u.env AND d.usr = u.usr)`,
        [longest.map((l) => l.env), longest.map((l) => l.user), longest.map((l) => l.silentMs)],
      );
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

export async function lookBack(db: Queryable, presence: Presence, jobs: readonly Job[]): Promise<Looked[]> {
  const users = jobs.map((job) => ({ env: job.key, usr: job.ref! }));
  const online = await connectedUsers(presence, users);
  const rows = await db.query<{ job: number; mode: 'providers' | 'webhook'; conv: number; seq: number }>(
    `SELECT u.ord::int - 1 AS job, ${pushMode('e')} AS mode, m.conv, x.seq
     FROM unnest($1::int[], $2::bigint[], $3::timestamptz[]) WITH ORDINALITY u(env, usr, since, ord)
     JOIN environments e ON e.no = u.env AND e.status = 'active' AND ${pushMode('e')} <> 'off'
     CROSS JOIN ${userOf('u.env', 'u.usr')} r
     CROSS JOIN ${membershipsOf('u.env', 'u.usr', 'NOT muted')} m
     CROSS JOIN ${conversationOf('m.env', 'm.conv')} c
     CROSS JOIN LATERAL (
       SELECT * FROM messages WHERE conv = m.conv AND env = m.env AND seq > greatest(m.last_read_seq, m.last_delivered_seq)
       ORDER BY seq DESC LIMIT ${mostOfOne}) x
     WHERE NOT u.usr = ANY($4::bigint[]) AND r.deactivated_at IS NULL AND c.deleted_at IS NULL AND c.last_activity_at >= u.since
       AND x.created_at >= u.since AND x.deleted_at IS NULL AND x.sender IS DISTINCT FROM u.usr
     ORDER BY x.created_at, m.conv, x.seq`,
    [
      users.map((u) => u.env),
      users.map((u) => u.usr),
      jobs.map((job) => (job.data as { since: string }).since),
      [...online],
    ],
  );
  const seen = new Set<string>();
  const isFirst = (row: { job: number; conv: number; seq: number }): boolean => {
    const key = `${users[row.job]!.usr} ${row.conv} ${row.seq}`;
    return !seen.has(key) && !!seen.add(key);
  };
  return jobs.map(({ key: env, ref }, job) => ({
    runAt: null,
    planned: rows
      .filter((row) => row.job === job && isFirst(row))
      .slice(-mostInAll)
      .map(({ mode, conv, seq }) => ({
        runAt: null,
        env,
        conv,
        seq,
        pushTo: mode === 'webhook' ? [] : [ref!],
        recipients: mode === 'webhook' ? [ref!] : [],
      })),
  }));
}
