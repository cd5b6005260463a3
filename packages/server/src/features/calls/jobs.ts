import { createWorker } from '../../platform/jobs/worker.ts';
import type { Worker } from '../../platform/jobs/worker.ts';
import { enqueue } from '../../platform/jobs/sql/jobs.ts';
import type { Job } from '../../platform/jobs/sql/jobs.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Db, Tx } from '../../platform/postgres/db.ts';
import type { Services } from '../context.ts';
import { rungOut, withMove } from './call-state.ts';
import { change, push } from './moves.ts';
import { isIn } from './participant-state.ts';
import * as sql from './sql.ts';

/** What happens to a call later, as durable jobs, which survive a restart of everything. */

const callQueue = { name: 'calls', width: 20 };

type CallJob =
  /** The call has rung for 45 s. */
  | { kind: 'ring' }
  /** The call has rung for some seconds: participants of whom no socket confirmed it get a push. */
  | { kind: 'unheard' }
  /** The socket of a participant, or one of a participant who has named none (null), closed 30 s ago. */
  | { kind: 'gone'; user: number; session: string | null; at?: string };

/** Milliseconds that a socket has to confirm that it got an incoming call. */
export const unheardMs = 4_000;

const leaseMs = 15_000;

/** Queues a job for `ms` milliseconds after `at`. */
export const later = (
  tx: Tx,
  { env, no }: { env: number; no: number },
  data: CallJob,
  at: string,
  ms: number,
): Promise<void> => enqueue(tx, callQueue, [{ key: env, ref: no, data }], new Date(Date.parse(at) + ms));

export function createCallWorker(options: { db: Db; services: Services; logger: Logger }): Worker {
  const { db, services, logger } = options;

  async function run(job: Job): Promise<void> {
    const what = job.data as CallJob;
    // Asked before the transaction, which must not wait for Redis.
    if (what.kind === 'gone' && what.session === null) {
      const [connected] = await services.calls.connected([{ env: job.key, user: what.user }]);
      if (connected) return;
    }
    await db.tx(async (tx) => {
      const locked = await sql.lockCall(tx, job.key, job.ref!);
      if (!locked || locked.call.status === 'ended') return;
      const { call, at } = locked;
      if (what.kind === 'unheard') {
        const users = await sql.takeUnheard(tx, call);
        return push(services, tx, call, users, 'incoming', services.clock.now() - unheardMs);
      }
      if (what.kind === 'ring') {
        const missed = call.participants.filter((p) => p.state === 'ringing');
        const here = missed.map(({ usr }) => ({ user: usr, endedHere: 'missed' as const }));
        // If the call ends for everybody, they are told of that instead.
        await change({ services }, tx, call, rungOut(call, at), call.status === 'active' ? here : []);
        return;
      }
      const one = call.participants.find((p) => p.usr === what.user);
      // A later closing has its own job.
      const gone = one?.goneAt !== null && one?.goneAt === (what.at ?? one?.goneAt);
      if (one && isIn(one) && one.session === what.session && gone)
        await change({ services }, tx, call, withMove(call, what.user, 'leave', at));
    });
  }

  return createWorker({
    db,
    logger,
    queue: callQueue.name,
    slots: 20,
    leaseMs,
    run: (jobs) =>
      Promise.resolve(
        jobs.map(async (job) => {
          await run(job);
          return { runAt: null };
        }),
      ),
  });
}
