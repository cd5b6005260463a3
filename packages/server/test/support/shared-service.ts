import { randomBytes } from 'node:crypto';
import { createFirst } from '../../src/features/accounts/bootstrap.ts';
import { createIds, systemClock } from '../../src/platform/clock.ts';
import { PgDb } from '../../src/platform/postgres/db.ts';
import { runningPostgres } from '../../src/platform/postgres/embedded/index.ts';
import { createVault, loadMasterKey } from '../../src/platform/secrets.ts';
import { environments, owner } from './service.ts';
import type { Service } from './service.ts';
import { terminateSockets } from './socket.ts';

/** What the lane tells of its service (scripts/test-lane.ts). */
type Told = Pick<Service, 'url' | 'port' | 'dataDir' | 'env'>;

/** The service that the lane keeps running, with new environments and a new owner; undefined outside of `npm test`. */
export async function sharedService(): Promise<Service | undefined> {
  const told = process.env['TEST_SERVICE'];
  if (told === undefined) return undefined;
  const service = JSON.parse(told) as Told;
  await renew(service.dataDir);
  const refuse = (): never => {
    throw new Error('Other files use this service: ask for one with useService({ own: true }).');
  };
  return {
    ...service,
    get process() {
      return refuse();
    },
    output: refuse,
    stop: refuse,
    kill: refuse,
    restart: refuse,
    dispose: () => Promise.resolve(terminateSockets()),
  };
}

/**
 * The environments and the account of the file before keep what they have under other names, and get no more work
 * done; new ones get their names and keys.
 */
async function renew(dataDir: string): Promise<void> {
  const connection = await runningPostgres(dataDir);
  if (!connection) throw new Error('The PostgreSQL of the shared service does not answer.');
  const db = new PgDb(connection, { max: 1, onError: () => undefined });
  const vault = createVault(await loadMasterKey(undefined, dataDir, false));
  const ids = createIds(systemClock, randomBytes);
  const services = { clock: systemClock, ids, vault, linkOrigin: () => 'http://localhost' };
  try {
    await db.tx(async (tx) => {
      await tx.query(
        `UPDATE environments SET id = id || '_' || no, status = 'suspended' WHERE id !~ '_[0-9]+$'`,
      );
      await tx.query(`UPDATE secret_keys SET id = id || env WHERE length(id) = 16`);
      await tx.query(`UPDATE accounts SET email = no || email WHERE email = $1`, [owner.email]);
      await tx.query('DELETE FROM media_nodes');
      const listed = Object.values(environments);
      await createFirst(tx, services, { environments: listed, kind: 'development', ...owner });
    });
  } finally {
    await db.close();
  }
}
