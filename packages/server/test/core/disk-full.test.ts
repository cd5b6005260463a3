import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { test } from 'node:test';
import pg from 'pg';
import { ApiError } from '@parley/protocol';
import { PgDb } from '../../src/platform/postgres/db.ts';
import { createApi } from '../support/api.ts';
import { environments, startService } from '../support/service.ts';
import { use } from '../support/use.ts';
import { createGroup, outsidePostgres } from './tools.ts';

/** docs/faults.md: the store's disk is full. */

const full = /the disk of the store is full/;

/** A small disk in memory; null where this user may mount none. */
async function smallDisk(): Promise<{
  path: string;
  fill(): void;
  free(): void;
  remove(): Promise<void>;
} | null> {
  const path = await mkdtemp(join(tmpdir(), 'parley-disk-'));
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=220m', 'none', path]).status !== 0) {
    await rm(path, { recursive: true });
    return null;
  }
  const ballast = join(path, 'ballast');
  return {
    path,
    fill: () => {
      const file = openSync(ballast, 'a');
      // By ever smaller pieces, until nothing fits.
      for (let size = 1 << 20; size >= 1; size >>= 1)
        try {
          for (;;) writeSync(file, Buffer.alloc(size));
        } catch {
          continue;
        }
      closeSync(file);
    },
    free: () => rmSync(ballast),
    remove: async () => {
      spawnSync('umount', ['-l', path]);
      await rm(path, { recursive: true });
    },
  };
}

const messageOf = ({ body }: { body: unknown }) => (body as { error: { message: string } }).error.message;

const disk = use(
  async () => ({ small: await smallDisk() }),
  async ({ small }) => small?.remove(),
);

test('docs/faults.md: on a full disk sends and /readyz say so, reads go on, and all is well when there is room', async (t) => {
  const { small } = disk;
  if (!small) return t.skip('no file system may be mounted here');
  const service = await startService({ dataDir: join(small.path, 'data') });
  try {
    const server = createApi(service.url, environments.dev.secretKey);
    for (const id of ['ann', 'bob']) await server('PUT', `/v1/users/${id}`, { name: id });
    const conversation = await createGroup(server, ['ann', 'bob']);
    const send = () =>
      server('POST', `/v1/conversations/${conversation}/messages`, {
        text: randomBytes(2_000).toString('hex'),
        senderId: 'ann',
      });
    const ready = async () => {
      const answer = await fetch(`${service.url}/readyz`);
      return [answer.status, ((await answer.json()) as { reason?: string }).reason];
    };
    assert.equal((await send()).status, 201);
    small.fill();
    let refused = await send();
    while (refused.status === 201) refused = await send();
    assert.equal(refused.status, 503);
    assert.match(messageOf(refused), full);
    const problem = [503, 'the disk of the store is full'];
    assert.deepEqual(await ready(), problem);
    assert.equal((await server('GET', `/v1/conversations/${conversation}/messages`)).status, 200);
    assert.match(service.output(), full);
    // Its log has no room either: PostgreSQL ends, and does not come back.
    const client = new pg.Client({
      host: join(small.path, 'data/postgres'),
      user: 'parley',
      database: 'parley',
    });
    client.on('error', () => undefined);
    await client.connect();
    await assert.rejects(client.query(`SELECT pg_logical_emit_message(false, 'x', repeat('x', 40000000))`));
    assert.match(messageOf(await send()), full);
    assert.deepEqual(await ready(), problem);
    small.free();
    while ((await ready())[0] !== 200) await delay(50);
    assert.equal((await send()).status, 201);
  } finally {
    await service.dispose();
  }
});

const postgres = use(outsidePostgres, (p) => p.dispose());

test('docs/faults.md: an error of a full disk names it, also when PostgreSQL then ends, and is logged once', async () => {
  const told: string[] = [];
  const db = new PgDb(postgres.connection, { max: 1, onError: (_, what) => told.push(what) });
  const named = (error: unknown) =>
    error instanceof ApiError && error.code === 'service_unavailable' && full.test(error.message);
  const fail = (state: string) =>
    db.query(`DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '${state}'; END $$`);
  try {
    await assert.rejects(fail('55P03'), (error) => !named(error));
    assert.equal(db.diskFull, false);
    await assert.rejects(fail('53100'), named);
    await assert.rejects(fail('53100'), named);
    assert.equal(db.diskFull, true);
    assert.deepEqual(
      told.filter((what) => full.test(what)),
      ['the disk of the store is full'],
    );
    await postgres.stop();
    await assert.rejects(db.query('SELECT 1'), named);
    assert.equal(await db.hasRoom(), false);
    await postgres.start();
    assert.equal(await db.hasRoom(), true);
    assert.equal(db.diskFull, false);
  } finally {
    await db.close();
  }
});
