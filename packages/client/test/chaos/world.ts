import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '../../../server/src/platform/postgres/embedded/index.ts';
import { startRedis } from '../../../server/test/support/redis.ts';
import { startService } from '../../../server/test/support/service.ts';
import type { Service } from '../../../server/test/support/service.ts';

/** Two nodes, Redis and PostgreSQL, each of which can be killed and comes back. */
export interface World {
  /** Ports of the nodes that run. */
  ports(): number[];
  /** The nodes that run. */
  services(): Service[];
  /** The store's URL. */
  store: string;
  /** What ended without being killed, or did not come back: there must be none. */
  crashes: string[];
  /** kill -9 of a node; it comes back by itself. */
  killNode(index: number): Promise<void>;
  killRedis(): Promise<void>;
  killPostgres(): Promise<void>;
  /** Everything runs again. */
  whole(): Promise<void>;
  nodes: number;
  dispose(): Promise<void>;
}

const userQuery = (host: string) => `postgresql://parley@localhost/parley?host=${encodeURIComponent(host)}`;

export interface WorldOptions {
  /** More settings of a node that is started. */
  env?: () => Record<string, string>;
  /** The last node that runs may be killed too; then nobody serves until it is back. */
  killLast?: boolean;
}

export async function startWorld(
  nodeCount: number,
  log: (line: string) => void,
  options: WorldOptions = {},
): Promise<World> {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-chaos-'));
  // The embedded one is made for a single process; a node that comes back and finds every connection taken can serve nobody.
  const settings = { max_connections: String(nodeCount * 40) };
  const startStore = () => startEmbeddedPostgres({ dataDir, log: () => undefined, settings });
  let postgres = await startStore();
  const redis = await startRedis();
  const env = {
    DATABASE_URL: userQuery(postgres.connection.host),
    REDIS_URL: redis.url,
    CHAT_MASTER_KEY: randomBytes(32).toString('base64'),
    CHAT_LOG_LEVEL: 'error',
  };
  const nodes: (Service | null)[] = [];
  const crashes: string[] = [];
  // They are process groups of their own: nobody else ends them with us.
  const endAll = (): void => {
    for (const node of nodes)
      try {
        if (node) process.kill(-node.process.pid!, 'SIGKILL');
      } catch {
        // it ended a moment ago
      }
  };
  process.once('exit', endAll);
  const startNode = async (index: number, dataDir?: string): Promise<void> => {
    const node = await startService({
      env: { ...env, ...options.env?.() },
      ...(dataDir === undefined ? {} : { dataDir }),
    });
    nodes[index] = node;
    node.process.once('exit', (code) => {
      if (nodes[index] !== node) return;
      crashes.push(`node ${index} ended with ${code}:\n${node.output().slice(-4_000)}`);
    });
  };
  for (let i = 0; i < nodeCount; i++) await startNode(i);
  const dirs = nodes.map((n) => n!.dataDir);
  /** What is being brought back. */
  const pending = new Set<Promise<void>>();
  const track = (what: string, bring: () => Promise<void>): Promise<void> => {
    const work = bring()
      .catch((error: unknown) => void crashes.push(`${what}: ${String(error)}`))
      .finally(() => pending.delete(work));
    pending.add(work);
    return work;
  };
  /** A part that is being brought back is not killed again meanwhile. */
  const once = (what: string, bring: () => Promise<void>): (() => Promise<void>) => {
    let down: Promise<void> | null = null;
    return () => (down ??= track(what, bring).finally(() => (down = null)));
  };

  return {
    nodes: nodeCount,
    crashes,
    ports: () => nodes.flatMap((n) => n?.port ?? []),
    services: () => nodes.filter((n) => n !== null),
    store: env.DATABASE_URL,
    killNode: (index) =>
      track(`node ${index}`, async () => {
        const node = nodes[index];
        if (!node || (!options.killLast && nodes.filter(Boolean).length === 1)) return;
        log(`node ${index} killed`);
        nodes[index] = null;
        await node.kill();
        // A node waits for a store that is away; so do we, to have its port.
        await startNode(index, dirs[index]!);
        log(`node ${index} back`);
      }),
    killRedis: once('Redis', async () => {
      log('Redis killed');
      await redis.kill();
      await new Promise((resolve) => setTimeout(resolve, 700));
      await redis.start();
      log('Redis back');
    }),
    killPostgres: once('PostgreSQL', async () => {
      log('PostgreSQL killed');
      const pid = Number(
        (await readFile(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8')).split('\n')[0],
      );
      process.kill(pid, 'SIGKILL');
      await postgres.exited;
      postgres = await startStore();
      log('PostgreSQL back');
    }),
    whole: async () => {
      while (pending.size > 0) await Promise.all(pending);
    },
    dispose: async () => {
      while (pending.size > 0) await Promise.allSettled(pending);
      for (const node of nodes.splice(0)) await node?.dispose();
      process.removeListener('exit', endAll);
      await redis.stop();
      await postgres.stop();
      await rm(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    },
  };
}
