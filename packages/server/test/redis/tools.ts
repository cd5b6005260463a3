import assert from 'node:assert/strict';
import { pino } from 'pino';
import { connectRedis } from '../../src/platform/redis.ts';
import type { RedisConnection } from '../../src/platform/redis.ts';

export const silent = pino({ level: 'silent' });

export interface Connections {
  (url: string): Promise<RedisConnection>;
  close(connection: RedisConnection): Promise<void>;
  closeAll(): Promise<void>;
}

/** Connections of a test file, closed together. */
export function connections(): Connections {
  const open = new Set<RedisConnection>();
  const close = async (connection: RedisConnection): Promise<void> => {
    open.delete(connection);
    await connection.close();
  };
  const connect = async (url: string): Promise<RedisConnection> => {
    const connection = connectRedis(url, silent);
    open.add(connection);
    assert.ok(await connection.ready(10_000), 'Redis answers');
    return connection;
  };
  return Object.assign(connect, {
    close,
    closeAll: async () => {
      await Promise.all([...open].map(close));
    },
  });
}

/** Waits for what another process does; for ever, as the runner has its own limit. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5));
}
