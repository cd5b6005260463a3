import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startService } from '../../src/compose.ts';
import type { ServiceOptions } from '../../src/compose.ts';
import { readConfig } from '../../src/config.ts';
import type { Services } from '../../src/features/context.ts';
import { pooledRandom, systemClock } from '../../src/platform/clock.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { openStore } from '../../src/platform/postgres/store.ts';
import { environments } from '../support/service.ts';

export interface InProcess {
  url: string;
  /** What its operations are given. */
  services: Services;
  stop(): Promise<void>;
}

/** Nodes of one service in the test's own process: what they are given can be changed, and what their features get can be used. */
export async function startInProcess(
  env: Record<string, string>,
  count: number,
  changes: Pick<ServiceOptions, 'plans' | 'peers'> = {},
): Promise<InProcess[]> {
  const logger = createLogger('error');
  const nodes: InProcess[] = [];
  while (nodes.length < count) {
    const dataDir = await mkdtemp(join(tmpdir(), 'parley-test-'));
    const { config } = readConfig({
      CHAT_ROLES: 'api,gateway,worker',
      ...env,
      PORT: '0',
      CHAT_DATA_DIR: dataDir,
      CHAT_BOOTSTRAP_ENVIRONMENTS: JSON.stringify(Object.values(environments)),
    });
    const service = await startService({
      config,
      store: await openStore(config, logger),
      logger,
      clock: systemClock,
      random: Math.random,
      randomBytes: pooledRandom(),
      drainMs: 0,
      ...changes,
    });
    nodes.push({
      url: `http://127.0.0.1:${service.port}`,
      services: service.services,
      stop: async () => {
        await service.stop();
        await rm(dataDir, { recursive: true, force: true });
      },
    });
  }
  return nodes;
}
