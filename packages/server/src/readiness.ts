import { setTimeout as delay } from 'node:timers/promises';
import type { RoleName } from './config.ts';
import type { Parts } from './platform/parts.ts';
import type { Peers } from './platform/peers.ts';
import { diskFullText } from './platform/postgres/db.ts';
import type { PgDb } from './platform/postgres/db.ts';
import { migrationCheck } from './platform/postgres/migrate.ts';
import type { Readiness } from './transport/rest/options.ts';

export interface ReadinessOptions {
  db: PgDb;
  logDb: PgDb;
  peers: Pick<Peers, 'reachable'>;
  state: () => Parts<RoleName>['state'];
}

const timeoutMs = 2_000;

/** What `/readyz` answers: whether this process can do its work now. */
export function createReadiness({ db, logDb, peers, state }: ReadinessOptions): () => Promise<Readiness> {
  const migrationProblem = migrationCheck(db);
  /** Tries it only after something could not be written. */
  const diskProblem = async (): Promise<string | null> => {
    for (const some of [db, logDb]) if (some.diskFull && !(await some.hasRoom())) return diskFullText;
    return null;
  };
  const storeProblem = async (): Promise<string | null> => {
    try {
      // Also over the log's own connections, which sends need.
      return await Promise.race([
        Promise.all([migrationProblem(), logDb.ping()]).then(
          async ([problem]) => problem ?? (await diskProblem()),
        ),
        delay(timeoutMs, 'the store does not answer', { ref: false }),
      ]);
    } catch {
      return db.diskFull || logDb.diskFull ? diskFullText : 'the store cannot be reached';
    }
  };
  return async () => {
    if (state() !== 'running')
      return { status: 'not ready', reason: state() === 'starting' ? 'starting' : 'shutting down' };
    const reason = await storeProblem();
    if (reason !== null) return { status: 'not ready', reason };
    // Without Redis each node continues alone, which is no reason to take all nodes out of service.
    if (!(await peers.reachable())) return { status: 'degraded', reason: 'Redis cannot be reached' };
    return { status: 'ready' };
  };
}
