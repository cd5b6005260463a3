import { spawnSync } from 'node:child_process';
import { createHmac, randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { start } from '../children.ts';
import { listening } from './listening.ts';
import { startRedis } from './redis.ts';
import { accountsOf } from './server.ts';
import type { Server, ServerName } from './server.ts';

/**
 * Centrifugo 6, if the program is on the PATH. Rooms are channels that a user's token names, with a history of which clients
 * recover what they missed; it lives in memory, or in a stream for each channel of a Redis that keeps nothing on disk.
 */

const program = 'centrifugo';

export const hasCentrifugo = (): boolean => spawnSync(program, ['version']).status === 0;

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

function sign(claims: object, key: string): string {
  const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`;
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`;
}

export const createCentrifugo = (options: {
  name: ServerName;
  label: string;
  directory: string;
  port: number;
  engine: 'memory' | 'redis';
}): Server => ({
  name: options.name,
  label: options.label,
  durable: false,
  async start() {
    const { directory, port, engine } = options;
    const redis = engine === 'redis' ? await startRedis() : null;
    if (engine === 'redis' && !redis) throw new Error('there is no redis-server');
    const key = randomBytes(32).toString('hex');
    const config = join(directory, 'config.json');
    mkdirSync(directory, { recursive: true });
    writeFileSync(
      config,
      JSON.stringify({
        http_server: { address: '127.0.0.1', port },
        client: { token: { hmac_secret_key: key } },
        channel: {
          without_namespace: {
            history_size: 100,
            history_ttl: '1h',
            force_recovery: true,
            allow_publish_for_subscriber: true,
          },
        },
        engine: { type: engine, ...(redis ? { redis: { address: redis.url } } : {}) },
        usage_stats: { disabled: true },
        log: { level: 'warn' },
      }),
      { mode: 0o600 },
    );
    const child = start(program, ['--config', config]);
    await listening(child, port);
    const now = Math.floor(Date.now() / 1_000);
    return {
      wire: 'centrifugo' as const,
      port,
      gateway: child.pid,
      roots: redis ? [child.pid, redis.pid] : [child.pid],
      accounts: (plan) =>
        Promise.resolve(
          accountsOf(
            plan,
            (index) => `${plan.name}-r${index}`,
            () => '',
          ).map((account) => ({
            ...account,
            secret: sign(
              { sub: account.name, iat: now - 1, exp: now + 86_400, channels: account.rooms },
              key,
            ),
          })),
        ),
      async stop() {
        await child.stop();
        await redis?.stop();
      },
    };
  },
});
