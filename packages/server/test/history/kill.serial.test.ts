import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { seed } from '../../../../scripts/seed.ts';
import type { PgDb } from '../../src/platform/postgres/db.ts';
import { createScene } from '../support/scene.ts';
import { environments, startService } from '../support/service.ts';
import type { Service } from '../support/service.ts';
import { openDb, use } from '../support/use.ts';
import { startCustomerMariadb, startCustomerPostgres } from './servers.ts';
import { openStorage } from './world.ts';

/**
 * kill -9 of the service, its worker, its store and two customers' databases, at random, under load. After recovery each customer's
 * database equals the log row by row: nothing lost, nothing doubled, nothing older than what it is.
 */

/** Park and Miller's: enough for dice. */
function randomFrom(start: number): () => number {
  let state = (start % 2_147_483_646) + 1;
  return () => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647;
}

const databases = use(
  async () => {
    const [store, dev, other] = await Promise.all([
      startCustomerPostgres(),
      startCustomerPostgres(),
      startCustomerMariadb(),
    ]);
    return { store, dev, other };
  },
  ({ store, dev, other }) => Promise.all([store.stop(), dev.stop(), other.stop()]),
);

/** The environments with a database of their own, by name. */
const names = ['dev', 'other'] as const;
type Name = (typeof names)[number];

interface Row {
  id: string;
  seq: number;
  text: string | null;
  version: number;
  hard: boolean;
  deleted: boolean;
  sender: string | null;
}

async function rowsThere(url: string, name: Name): Promise<Row[]> {
  const selected = `SELECT id, seq, text, version, hard, deleted_at IS NOT NULL AS deleted, sender_id AS sender FROM parley_messages
    WHERE env = '${environments[name].id}'`;
  const { hostname: host, port, username, pathname } = new URL(url);
  const to = { host, port: Number(port), user: username, database: pathname.slice(1) };
  let rows: Row[];
  if (url.startsWith('mysql')) {
    const client = await mysql.createConnection(to);
    rows = (await client.query(selected))[0] as unknown as Row[];
    await client.end();
  } else {
    const client = new pg.Client(to);
    await client.connect();
    rows = (await client.query<Row>(selected)).rows;
    await client.end();
  }
  return rows
    .map(({ seq, hard, deleted, ...row }) => ({
      ...row,
      seq: Number(seq),
      hard: Boolean(hard),
      deleted: Boolean(deleted),
    }))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}

const rowsHere = (db: PgDb, name: Name): Promise<Row[]> =>
  db.query<Row>(
    `SELECT m.id, m.text, m.version, u.id AS sender, m.seq::int AS seq, m.hard, m.deleted_at IS NOT NULL AS deleted FROM messages m
     JOIN environments e ON e.no = m.env LEFT JOIN users u ON u.env = m.env AND u.no = m.sender WHERE e.id = $1 ORDER BY m.id COLLATE "C"`,
    [environments[name].id],
  );

/** Sends, edits and deletes until it is told to stop. What was acknowledged is noted. */
function load(
  service: Service,
  places: { name: Name; cid: string }[],
  sent: Map<string, Name>,
  random: () => number,
) {
  let on = true;
  const round = sent.size;
  const lanes = places.map(async ({ name, cid }, lane) => {
    const { server } = createScene(service.url, name);
    for (let n = 0; on; n++) {
      const key = `${round}-${lane}-${n}`;
      // What is cut off by a kill was acknowledged or not: the log says.
      const answer = await server('POST', `/v1/conversations/${cid}/messages`, {
        clientMsgId: key,
        text: key,
      }).catch(() => null);
      if (answer?.status !== 201) {
        await delay(20);
        continue;
      }
      sent.set(answer.body.id as string, name);
      const dice = random();
      const path = `/v1/messages/${answer.body.id}`;
      if (dice < 0.15)
        await server('PATCH', path, { text: `${key} edited`, expectedVersion: 1 }).catch(() => null);
      else if (dice < 0.25) await server('DELETE', path).catch(() => null);
      else if (dice < 0.3) await server('DELETE', `${path}?hard=true`).catch(() => null);
    }
  });
  return async (): Promise<void> => {
    on = false;
    await Promise.all(lanes);
  };
}

test('after kills at random both customers’ databases hold exactly what the log holds', async () => {
  const random = randomFrom(seed('history kills'));
  const env = {
    DATABASE_URL: (await databases.store.createDatabase()).replace(/\?.*/, ''),
    CHAT_MASTER_KEY: randomBytes(32).toString('base64'),
    CHAT_ALLOW_PRIVATE_TARGETS: 'true',
  };
  const roles = { service: 'api,gateway', worker: 'worker' };
  const launch = (role: keyof typeof roles) => startService({ env: { ...env, CHAT_ROLES: roles[role] } });
  const running = { service: await launch('service'), worker: await launch('worker') };
  const urls = { dev: await databases.dev.createDatabase(), other: await databases.other.createDatabase() };
  const sent = new Map<string, Name>();
  try {
    const places: { name: Name; cid: string }[] = [];
    const db = await openDb(running.service);
    for (const name of names) {
      await (await openStorage(running.service, db, environments[name].id)).connect(urls[name]);
      const scene = createScene(running.service.url, name);
      const writer = await scene.actor();
      for (let i = 0; i < 3; i++) places.push({ name, cid: (await scene.group(writer, [])).id });
    }
    await db.close();
    const order = (['worker', 'service', 'store', 'dev', 'other'] as const)
      .map((victim) => ({ victim, at: random() }))
      .sort((a, b) => a.at - b.at);
    for (const { victim } of order) {
      const stop = load(running.service, places, sent, random);
      await delay(300 + random() * 500);
      if (victim === 'service' || victim === 'worker') {
        await running[victim].dispose();
        running[victim] = await launch(victim);
      } else {
        await databases[victim].kill();
        await delay(200 + random() * 400);
        await databases[victim].start();
      }
      await stop();
    }
    const after = await openDb(running.service);
    for (const name of names) {
      const storage = await openStorage(running.service, after, environments[name].id);
      await after.query(`UPDATE storage SET due_at = '-infinity'`);
      await storage.settled();
      const here = await rowsHere(after, name);
      const acknowledged = [...sent].filter(([, of]) => of === name).map(([id]) => id);
      assert.ok(
        here.length >= acknowledged.length && acknowledged.length > 20,
        `${acknowledged.length} were acknowledged`,
      );
      assert.deepEqual(await rowsThere(urls[name], name), here);
      const kept = new Set(here.map((m) => m.id));
      for (const id of acknowledged) assert.ok(kept.has(id), `${id} was acknowledged`);
    }
    await after.close();
  } finally {
    await Promise.all([running.service.dispose(), running.worker.dispose()]);
  }
});
