import type { Config } from '../../config.ts';
import { openVault } from '../../features/accounts/bootstrap.ts';
import type { PgDb } from '../../platform/postgres/db.ts';
import { ok, problem } from './finding.ts';
import type { Finding } from './finding.ts';

export async function lookAtKey(db: PgDb, config: Config): Promise<Finding> {
  try {
    await openVault(db, config.masterKey, config.dataDir);
    return ok('key', 'the master key opens the store');
  } catch (error) {
    return problem('key', (error as Error).message, 'Nothing that is sealed can be read with this key.');
  }
}
