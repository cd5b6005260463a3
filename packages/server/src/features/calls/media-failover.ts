import type { Logger } from '../../platform/logging.ts';
import { createPeriodic } from '../../platform/flow/periodic.ts';
import type { Periodic } from '../../platform/flow/periodic.ts';
import type { Db } from '../../platform/postgres/db.ts';
import type { Services } from '../context.ts';
import { ended } from './call-state.ts';
import { change } from './moves.ts';
import { chooseNode, findNode, markUnhosted, orphans, place } from './sql/media-nodes.ts';
import { isIn } from './participant-state.ts';
import * as sql from './sql.ts';

/**
 * Moves calls whose media node is gone to another node. It looks every second; with the lease (5 s) and the clients'
 * new transports a call continues within 10 s. If there is no node for a while, the call has failed.
 */

const lookMs = 1_000;
/** Seconds; long enough for a process that restarts to be back. */
const unhostedSeconds = 15;

/** Returns true if the call has a node again. */
async function rehost(
  { db, services }: { db: Db; services: Services },
  { env, no }: { env: number; no: number },
  leaving: string | null,
): Promise<boolean> {
  return db.tx(async (tx) => {
    const locked = await sql.lockCall(tx, env, no);
    if (!locked || locked.call.status === 'ended') return true;
    const { call, at } = locked;
    if (call.node !== leaving && (await findNode(tx, call.node))) return true;
    const node = await chooseNode(tx, call.node);
    if (!node) {
      if (leaving !== null) return false;
      if (await markUnhosted(tx, env, no, unhostedSeconds))
        await change({ services }, tx, call, ended(call, 'failed', at));
      return false;
    }
    const moved = await place(tx, call, node.id);
    tx.afterCommit(() => {
      for (const { usr, session } of moved.participants.filter(isIn))
        if (session !== null)
          services.sockets.toUsers(
            env,
            [usr],
            { t: 'call.media', d: { callId: call.id } },
            { only: session },
          );
    });
    return true;
  });
}

export const createMediaFailover = (options: { db: Db; services: Services; logger: Logger }): Periodic =>
  createPeriodic(lookMs, options.logger, 'looking for calls without a media node', async () => {
    for (const call of await orphans(options.db, null)) await rehost(options, call, null);
  });

/** Moves the calls of a node that is leaving; returns how many found no other node. */
export async function evacuate(options: { db: Db; services: Services }, node: string): Promise<number> {
  let left = 0;
  for (const call of await orphans(options.db, node)) if (!(await rehost(options, call, node))) left++;
  return left;
}
