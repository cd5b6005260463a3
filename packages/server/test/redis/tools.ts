import assert from 'node:assert/strict';
import { after } from 'node:test';
import { pino } from 'pino';
import { leaseKeys } from '../../src/platform/presence/redis-scripts.ts';
import { connectRedis } from '../../src/platform/redis.ts';
import type { RedisConnection } from '../../src/platform/redis.ts';
import { startRedis, startRedisCluster } from '../support/redis.ts';

export const silent = pino({ level: 'silent' });

export interface Connections {
  (url: string): Promise<RedisConnection>;
  close(connection: RedisConnection): Promise<void>;
  closeAll(): Promise<void>;
}

/** Long enough for any machine: only what tests the time-out itself has a shorter one. */
export const patienceMs = 60_000;

/** Connections of a test file, closed together. */
export function connections(): Connections {
  const open = new Set<RedisConnection>();
  const close = async (connection: RedisConnection): Promise<void> => {
    open.delete(connection);
    await connection.close();
  };
  const connect = async (url: string): Promise<RedisConnection> => {
    const connection = connectRedis(url, silent, patienceMs);
    open.add(connection);
    assert.ok(await connection.ready(patienceMs), 'Redis answers');
    return connection;
  };
  return Object.assign(connect, {
    close,
    closeAll: async () => {
      await Promise.all([...open].map(close));
    },
  });
}

/** A server, a cluster and connections to them, for a whole file. */
export async function useRedis() {
  const redis = await startRedis();
  const cluster = await startRedisCluster();
  const connect = connections();
  after(async () => {
    await connect.closeAll();
    await redis.stop();
    await cluster.stop();
  });
  return { redis, cluster, connect };
}

/** Lets the time of grace periods pass in Redis, whose clock nobody can move. */
export async function passGrace({ client }: RedisConnection, ms: number): Promise<void> {
  for (const server of 'nodes' in client ? client.nodes('master') : [client])
    for (const key of await server.keys('pg:*')) {
      const left = await server.pttl(key);
      // What has no time left is removed.
      if (left > 0) await server.pexpire(key, left - ms);
    }
}

/** As if the node had not renewed its lease in time. */
export async function endLease({ client }: RedisConnection, node: string): Promise<void> {
  for (const lease of await client.zrange(leaseKeys[0], '0', '-1'))
    if (lease.startsWith(`${node}#`)) await client.zadd(leaseKeys[0], '0', lease);
}

/** Waits for what another process does; for ever, as the runner has its own limit. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5));
}
