import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logging.ts';
import { createPeriodic } from '../../platform/flow/periodic.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { markKeysUsed } from './sql/keys.ts';

/** When a secret key, or a token that it signed, was last used: collected in memory and written once a minute. */

const flushMs = 60_000;
/** How many keys one process remembers per minute; further ones are recorded when they are used again. */
const maxKeys = 50_000;

export function createKeyUsage(options: { db: Queryable; clock: Clock; logger: Logger }) {
  const { db, clock, logger } = options;
  let usedAt = new Map<string, number>();

  async function flush(): Promise<void> {
    if (usedAt.size === 0) return;
    const batch = usedAt;
    usedAt = new Map();
    try {
      await markKeysUsed(db, batch);
    } catch (error) {
      for (const [id, ms] of batch) if (!usedAt.has(id)) usedAt.set(id, ms);
      throw error;
    }
  }

  const periodic = createPeriodic(flushMs, logger, 'last use of keys', flush);
  return {
    ...periodic,
    used: (keyId: string): void => {
      if (usedAt.size < maxKeys || usedAt.has(keyId)) usedAt.set(keyId, clock.now());
    },
    stop: async () => {
      await periodic.stop();
      await flush();
    },
  };
}
