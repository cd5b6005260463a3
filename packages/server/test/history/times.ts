import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { createConnections } from '../../src/features/storage/connections.ts';
import { slotContext } from '../../src/features/storage/sql.ts';
import type { SlotRow } from '../../src/features/storage/sql.ts';
import { message } from '../../src/platform/history/conformance.ts';
import { migrateHistory, openHistory } from '../../src/platform/history/open.ts';
import type { HistorySource } from '../../src/platform/history/target.ts';
import type { History } from '../../src/platform/history/port.ts';
import { engineOf } from '../../src/platform/history/target.ts';
import { createVault } from '../../src/platform/secrets.ts';
import { freePort } from '../storage/process.ts';
import { StandingTime } from '../support/time.ts';
import { depsOf, eventually } from './world.ts';

/** The part of the adapters' suite that is about time: statements that take too long, connections that nobody uses. */

/** A way to a server on this machine, which may fall silent, and knows how many connections it carries. */
async function way(url: string) {
  const target = Number(new URL(url.replace(/^\w+:/, 'http:')).port);
  const open = new Set<Socket>();
  let silent = false;
  const server = createServer((near) => {
    const far = connect({ host: '127.0.0.1', port: target });
    open.add(near);
    near.on('data', (data) => void (silent || far.write(data)));
    far.on('data', (data) => void (silent || near.write(data)));
    for (const socket of [near, far]) {
      socket.on('error', () => undefined);
      socket.on('close', () => {
        open.delete(near);
        near.destroy();
        far.destroy();
      });
    }
  }).listen(await freePort(), '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  return {
    url: url.replace(`:${target}/`, `:${port}/`),
    open: () => open.size,
    silence: () => void (silent = true),
    close: () => {
      for (const socket of open) socket.destroy();
      server.close();
    },
  };
}

const usual = { connectMs: 5_000, statementMs: 10_000, idleMs: 30_000 };

/** A busy machine may be too slow for short times: then it is tried again. */
const patiently = <T extends object>(what: () => Promise<T>): Promise<T> =>
  eventually(() => what().catch(() => null), 'the database answers within a short time');

/** Locks the messages of a database; tells whether the writer's statement still runs there, and lets go. */
const locks: Record<string, (admin: string) => Promise<{ running(): Promise<number>; end(): unknown }>> = {
  async postgres(admin) {
    const open = async () => {
      const client = new pg.Client(admin.replace(/\?.*/, ''));
      await client.connect();
      return client;
    };
    // Another connection looks: within a transaction PostgreSQL answers every time what it answered first.
    const [client, other] = [await open(), await open()];
    await client.query('BEGIN');
    await client.query('LOCK TABLE parley_messages');
    return {
      running: async () =>
        (
          await other.query<{ n: number }>(
            `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
          )
        ).rows[0]!.n,
      end: () => Promise.all([client.end(), other.end()]),
    };
  },
  async mysql(admin) {
    const { hostname, port, pathname } = new URL(admin);
    const open = () =>
      mysql.createConnection({
        host: hostname,
        port: Number(port),
        user: 'root',
        database: pathname.slice(1),
      });
    const [client, other] = [await open(), await open()];
    await client.query('LOCK TABLES parley_messages WRITE');
    return {
      running: async () => {
        const [rows] = await other.query(
          `SELECT count(*) AS n FROM information_schema.processlist WHERE user LIKE 'parley_writer%' AND command = 'Query'`,
        );
        return Number((rows as unknown as { n: number }[])[0]!.n);
      },
      end: () => {
        client.destroy();
        other.destroy();
      },
    };
  },
};

export function keepsTime(
  it: { source: HistorySource; admin?: string },
  kind: 'relational' | 'document' | 'http',
): void {
  /** With connections of its own, which lead through a way of its own. */
  const opened = async (times: Partial<typeof usual>) => {
    const through = await way(it.source.url);
    const source = { ...it.source, url: through.url };
    const deps = { ...depsOf('env_a'), times: { ...usual, ...times } };
    return { through, history: await patiently(() => openHistory(source, deps)) };
  };
  const used = (history: History) => patiently(async () => [await history.get('msg_none')]);

  test('a server that falls silent is given up when the time for a statement is over', async () => {
    const { through, history } = await opened({ statementMs: 500 });
    try {
      await used(history);
      through.silence();
      await assert.rejects(history.get('msg_none'), { errorClass: 'timeout' });
    } finally {
      through.close();
      await history.close();
    }
  });

  // Its connections belong to no database: the guard closes them when they are idle.
  if (kind === 'http') return;

  test('after a minute without use nothing is left of a database’s connections', async () => {
    const through = await way(it.source.url);
    const time = new StandingTime();
    const vault = createVault(randomBytes(32));
    const deps = depsOf('env_a');
    const connections = createConnections({
      vault,
      clock: time,
      timers: time.timers,
      onFault: () => undefined,
      histories: { open: (source) => openHistory(source, deps) },
      trials: {
        open: (source) => openHistory(source, deps),
        migrate: (source) => migrateHistory(source, deps),
      },
    });
    const seal = (text: string) => vault.seal(text, slotContext(1, 'a'));
    const slot = {
      slot: 'a',
      type: engineOf(through.url),
      url: seal(through.url),
      replicaUrl: null,
      schema: null,
      secrets: null,
      changedAt: '',
      aside: null,
      suspect: false,
    } as SlotRow;
    const env = { no: 1, id: 'env_a' };
    try {
      await (await connections.open(env, slot)).get('msg_none');
      await time.pass(59_000);
      const again = await connections.open(env, slot);
      await time.pass(59_000);
      await again.get('msg_none');
      assert.ok(through.open() > 0, 'what is in use stays open');
      await time.pass(120_000);
      await eventually(() => Promise.resolve(through.open() === 0), 'all are closed');
      await (await connections.open(env, slot)).get('msg_none');
    } finally {
      await connections.close();
      through.close();
    }
  });

  if (kind === 'document') return;

  test('a connection that nobody uses is closed', async () => {
    const { through, history } = await opened({ idleMs: 300 });
    try {
      await Promise.all(Array.from({ length: 8 }, () => history.get('msg_none')));
      await eventually(() => Promise.resolve(through.open() === 0), 'all are closed');
      await history.get('msg_none');
    } finally {
      await history.close();
      through.close();
    }
  });

  test('a statement that takes too long is ended in the database itself, and told', async () => {
    const history = await openHistory(it.source, {
      ...depsOf('env_a'),
      times: { ...usual, statementMs: 500 },
    });
    await used(history);
    const lock = await locks[engineOf(it.source.url)!]!(it.admin!);
    try {
      const record = message({ id: 'msg_late', conversationId: 'conv_late', seq: 1 });
      await assert.rejects(history.write([record]), { errorClass: 'timeout' });
      await assert.rejects(history.get('msg_late'), { errorClass: 'timeout' });
      await eventually(async () => (await lock.running()) === 0, 'nothing waits for the lock any more');
    } finally {
      await lock.end();
    }
    assert.deepEqual(await used(history), [null], 'what was given up was not written');
    await history.close();
  });
}
