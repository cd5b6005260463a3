import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import pg from 'pg';
import { leaseKeys, listKey } from '../../src/platform/presence/redis-scripts.ts';
import { createApi } from '../support/api.ts';
import { startPostgres } from '../support/postgres.ts';
import { startRedis } from '../support/redis.ts';
import type { TestRedis } from '../support/redis.ts';
import { createScene } from '../support/scene.ts';
import type { Actor, Scene } from '../support/scene.ts';
import { startService } from '../support/service.ts';
import type { EnvironmentName, Service } from '../support/service.ts';
import { connect } from '../support/socket.ts';
import type { TestSocket } from '../support/socket.ts';
import { signToken } from '../support/tokens.ts';
import { lazy, use } from '../support/use.ts';

type Settings = Record<string, string>;

/** Several processes of the real service on one PostgreSQL and one Redis. */
export interface Nodes {
  redis: TestRedis;
  nodes: Service[];
  /** Users and conversations, made through the first node. */
  scene: Scene;
  /** The same user, talking to another node. */
  at(node: Service, actor: Actor, environment?: EnvironmentName): Actor;
  online(node: Service, actor: Actor, environment?: EnvironmentName): Promise<TestSocket>;
  sql(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
  /** Ends the lease of the node that has the user's socket, as if it had not renewed it for 30 s. */
  endLeaseOf(user: Actor): Promise<void>;
  dispose(): Promise<void>;
}

/** What every node needs to join: a database of its own, a Redis and a master key. */
export async function startParts(): Promise<{ redis: TestRedis; env: Settings; stop(): Promise<void> }> {
  const postgres = await startPostgres();
  const redis = await startRedis();
  const env = {
    DATABASE_URL: await postgres.createDatabase(),
    REDIS_URL: redis.url,
    CHAT_MASTER_KEY: randomBytes(32).toString('base64'),
  };
  const stop = async (): Promise<void> => {
    await redis.stop();
    await postgres.stop();
  };
  return { redis, env, stop };
}

export async function startNodes(settings: Settings[]): Promise<Nodes> {
  const { redis, env, stop } = await startParts();
  const pool = new pg.Pool({ connectionString: env['DATABASE_URL'], max: 1 });
  pool.on('error', () => undefined);
  const nodes: Service[] = [];
  const launch = (more: Settings): Promise<Service> => startService({ env: { ...env, ...more } });
  const dispose = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => node.dispose()));
    await pool.end();
    await stop();
  };
  try {
    // The first prepares the store.
    nodes.push(await launch(settings[0]!));
    for (const started of await Promise.allSettled(settings.slice(1).map(launch))) {
      if (started.status === 'rejected') throw started.reason;
      nodes.push(started.value);
    }
  } catch (error) {
    await dispose();
    throw error;
  }
  const token = (actor: Actor, environment?: EnvironmentName): string =>
    signToken({ sub: actor.id }, environment ? { environment } : {});
  return {
    redis,
    nodes,
    scene: createScene(nodes[0]!.url),
    at: (node, actor, environment) => ({
      id: actor.id,
      api: createApi(node.url, token(actor, environment)),
    }),
    online: (node, actor, environment) => connect(node, token(actor, environment)),
    async endLeaseOf(user) {
      const { rows } = await pool.query<{ key: string }>(
        `SELECT env || ':' || no AS key FROM users WHERE id = $1`,
        [user.id],
      );
      const client = new Redis(redis.port, '127.0.0.1');
      for (const lease of await client.zrange(leaseKeys[0], 0, '-1'))
        if (await client.sismember(listKey(lease), rows[0]!.key)) await client.zadd(leaseKeys[0], 0, lease);
      client.disconnect();
    },
    sql: async (text, values) => (await pool.query(text, values)).rows as Record<string, unknown>[],
    dispose,
  };
}

/** Nodes for all tests of the file: started before them, gone after them. */
export function useNodes(settings: Settings[]): { cluster: Nodes; scene: Scene; nodes: Service[] } {
  const cluster = use(
    () => startNodes(settings),
    (started) => started.dispose(),
  );
  return {
    cluster,
    scene: lazy(() => cluster.scene),
    nodes: settings.map((_, i) => lazy(() => cluster.nodes[i]!)),
  };
}

/** Asks until it holds, for at most four minutes. @param explain what there was instead. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  explain: () => Promise<string> | string = () => 'something that did not happen',
): Promise<void> {
  for (const end = Date.now() + 240_000; !(await condition()); await delay(20))
    if (Date.now() > end) throw new Error(`waited in vain: ${await explain()}`);
}
