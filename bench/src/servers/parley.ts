import { createHmac } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { runningPostgres } from '../../../packages/server/src/platform/postgres/embedded/index.ts';
import { lineOf, start } from '../children.ts';
import type { Account } from '../load/messages.ts';
import { query } from './postgres.ts';
import { accountsOf, userName } from './server.ts';
import type { Plan, Running, Server } from './server.ts';

/** Parley as `npm start` runs it: one process with its embedded PostgreSQL, on the enterprise plan. */

const main = fileURLToPath(new URL('../../../packages/server/src/main.ts', import.meta.url));
const restAtOnce = 16;

export interface Tenant {
  id: string;
  secretKey: string;
}

/** Tenants whose keys the harness knows; the first is the usual one. */
export const tenants: readonly Tenant[] = Array.from({ length: 50 }, (_, i) => {
  const number = String(i).padStart(4, '0');
  return {
    id: `env_bench${number}`,
    secretKey: `sk_live_benchbench00${number}_${'benchbench'.repeat(4).slice(0, 32)}`,
  };
});

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A user token as a customer's server signs it (identity#user-token). */
export function signToken(userId: string, tenant: Tenant, nowSeconds: number): string {
  const header = encode({ alg: 'HS256', typ: 'JWT', kid: tenant.secretKey.split('_')[2] });
  const signed = `${header}.${encode({ sub: userId, iat: nowSeconds - 1, exp: nowSeconds + 86_400 })}`;
  return `${signed}.${createHmac('sha256', tenant.secretKey).update(signed).digest('base64url')}`;
}

export interface RunningParley extends Running {
  url: string;
  /** From spawn to the line that says it is ready. */
  startMs: number;
  accounts(plan: Plan, tenant?: Tenant): Promise<Account[]>;
  sql(text: string, values?: unknown[]): Promise<pg.QueryResult>;
  /** How to reach its store. */
  store(): Promise<pg.ClientConfig>;
}

export interface Parley extends Server {
  start(): Promise<RunningParley>;
}

/** @param wrap a command that starts the command that follows it, in surroundings of its own. */
export function createParley(
  dataDir: string,
  env: Record<string, string> = {},
  wrap: readonly string[] = [],
): Parley {
  /** Rooms that the store holds already, by plan. */
  const made = new Map<string, string[]>();
  return {
    name: 'parley',
    label: 'Parley',
    durable: true,
    async start() {
      await mkdir(dataDir, { recursive: true });
      const begin = performance.now();
      const [program, ...args] = [...wrap, process.execPath, main];
      const child = start(program!, args, {
        env: {
          PATH: process.env['PATH'] ?? '',
          PORT: '0',
          CHAT_DATA_DIR: dataDir,
          CHAT_LOG_LEVEL: 'warn',
          CHAT_BOOTSTRAP_EMAIL: 'owner@example.com',
          CHAT_BOOTSTRAP_PASSWORD: 'correct horse',
          CHAT_BOOTSTRAP_ENVIRONMENTS: JSON.stringify(
            tenants.map((t) => ({ ...t, kind: 'production', plan: 'enterprise' })),
          ),
          CHAT_ROLES: 'api,gateway,worker',
          ...env,
        },
      });
      const [, port] = await lineOf(child, /ready at http:\/\/\S+:(\d+)/);
      const startMs = performance.now() - begin;
      const url = `http://127.0.0.1:${port}`;
      const store = async (): Promise<pg.ClientConfig> => {
        const connection = await runningPostgres(dataDir);
        if (!connection) throw new Error('the embedded PostgreSQL is not running');
        return connection;
      };
      const sql = async (text: string, values?: unknown[]): Promise<pg.QueryResult> =>
        query(await store(), text, values);
      return {
        wire: 'parley',
        port: Number(port),
        url,
        startMs,
        roots: [child.pid],
        gateway: child.pid,
        accounts: (plan, tenant = tenants[0]!) => prepare(url, plan, tenant, made),
        sql,
        store,
        async stored() {
          const { rows } = await sql('SELECT count(*)::int AS n FROM messages');
          return (rows[0] as { n: number }).n;
        },
        stop: () => child.stop(),
      };
    },
  };
}

async function prepare(
  url: string,
  plan: Plan,
  tenant: Tenant,
  made: Map<string, string[]>,
): Promise<Account[]> {
  const key = `${tenant.id} ${plan.name}`;
  let rooms = made.get(key);
  if (!rooms) {
    const call = api(url, tenant.secretKey);
    await each(plan.users, (i) => call('PUT', `/v1/users/${userName(plan, i)}`, { name: `User ${i}` }));
    rooms = new Array<string>(plan.rooms.length);
    await each(plan.rooms.length, async (i) => {
      const members = plan.rooms[i]!.map((user) => userName(plan, user));
      const body = plan.direct ? { type: 'direct', members } : { type: 'group', name: `Room ${i}`, members };
      rooms![i] = ((await call('POST', '/v1/conversations', body)) as { id: string }).id;
    });
    made.set(key, rooms);
  }
  const now = Math.floor(Date.now() / 1_000);
  return accountsOf(
    plan,
    (index) => rooms[index]!,
    (user) => signToken(user, tenant, now),
  );
}

export const api =
  (url: string, secretKey: string) =>
  async (method: string, path: string, body?: object): Promise<unknown> => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${secretKey}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text.slice(0, 300)}`);
    return text === '' ? null : JSON.parse(text);
  };

async function each(count: number, work: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: restAtOnce }, worker));
}
