import type { Config } from '../../config.ts';
import { readVault } from '../../features/accounts/master-key.ts';
import type { PgDb } from '../../platform/postgres/db.ts';
import { ok, problem, warning } from './finding.ts';
import type { Finding } from './finding.ts';

export async function lookAtKey(db: PgDb, config: Config): Promise<Finding> {
  try {
    const { fingerprint, record, keys } = await readVault(db, config);
    const older = record.keys.filter((name) => name !== fingerprint);
    if (older.length > 0)
      return warning(
        'key',
        `values may be sealed with the keys ${record.keys.join(', ')}; this process seals with ${fingerprint}`,
        'A rotation is under way: go on with docs/operations/master-key.md.',
      );
    if (keys.others.length > 0)
      return warning(
        'key',
        `every value is sealed with the key ${fingerprint}, and another key is given too`,
        'Before a rotation: go on with docs/operations/master-key.md. After one: remove CHAT_MASTER_KEY_PREVIOUS and CHAT_MASTER_KEY_NEXT.',
      );
    return ok('key', `the master key ${fingerprint} opens the store`);
  } catch (error) {
    return problem('key', (error as Error).message, 'See docs/operations/master-key.md.');
  }
}
