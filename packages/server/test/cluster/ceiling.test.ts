import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { plans } from '@parley/protocol';
import { startService } from '../../src/compose.ts';
import { readConfig } from '../../src/config.ts';
import { pooledRandom, systemClock } from '../../src/platform/clock.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { openStore } from '../../src/platform/postgres/store.ts';
import { environments } from '../support/service.ts';
import { connect, open } from '../support/socket.ts';
import { startParts, until } from './nodes.ts';
import { createScene } from '../support/scene.ts';

/** Two nodes in this process, so that the plan's ceiling can be low. */
test('SPEC 8: the plan’s connection ceiling counts the sockets of all nodes; 4008 with retryAfterMs, and room again when one closes', async () => {
  const parts = await startParts();
  const logger = createLogger('error');
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-test-'));
  const start = async () => {
    const { config } = readConfig({
      ...parts.env,
      PORT: '0',
      CHAT_DATA_DIR: dataDir,
      CHAT_BOOTSTRAP_ENVIRONMENTS: JSON.stringify(Object.values(environments)),
    });
    const service = await startService({
      ...{ config, store: await openStore(config, logger), logger, clock: systemClock },
      random: Math.random,
      randomBytes: pooledRandom(),
      drainMs: 0,
      plans: { ...plans, free: { ...plans.free, connectionLimit: 4 } },
    });
    return { url: `http://127.0.0.1:${service.port}`, stop: () => service.stop() };
  };
  const [a, b] = [await start(), await start()];
  try {
    const scene = createScene(a.url, 'prod');
    const people = await Promise.all(Array.from({ length: 5 }, () => scene.actor()));
    const tokens = people.map((person) => scene.token(person));
    const sockets = [];
    for (const [i, token] of tokens.slice(0, 4).entries()) sockets.push(await connect(i % 2 ? b : a, token));
    for (const node of [a, b]) {
      const refused = open(node);
      await refused.opened;
      refused.send('auth', { token: tokens[4] });
      const { code, reason } = await refused.closed;
      assert.equal(code, 4008);
      assert.ok(JSON.parse(reason).retryAfterMs > 0, reason);
    }
    // Another environment has its own count.
    const elsewhere = createScene(b.url);
    await elsewhere.online(await elsewhere.actor());
    await sockets[1]!.close();
    const again = async (): Promise<boolean> =>
      connect(a, tokens[4]!).then(
        () => true,
        () => false,
      );
    await until(again);
  } finally {
    await Promise.all([a.stop(), b.stop()]);
    await parts.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
});
