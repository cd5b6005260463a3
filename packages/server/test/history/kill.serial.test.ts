import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { seed } from '../../../../scripts/seed.ts';
import { createScene } from '../support/scene.ts';
import type { Actor } from '../support/scene.ts';
import { startService } from '../support/service.ts';
import { openDb, use } from '../support/use.ts';
import { startCustomerPostgres } from './servers.ts';
import { openStorage } from './world.ts';

/**
 * kill -9 of the service, its store and the customer's database, at random, under load. After recovery the customer's database equals
 * the log row by row: nothing lost, nothing doubled, nothing older than what it is.
 */

/** Park and Miller's: enough for dice. */
function randomFrom(start: number): () => number {
  let state = (start % 2_147_483_646) + 1;
  return () => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647;
}

const customer = use(startCustomerPostgres, (c) => c.stop());

test('after kills at random the customer database holds exactly what the log holds', async () => {
  const random = randomFrom(seed('history kills'));
  let service = await startService();
  const conversations: string[] = [];
  const sent = new Map<string, string>();
  let writer: Actor;
  try {
    let db = await openDb(service);
    const url = await customer.createDatabase();
    await (await openStorage(service, db)).connect(url);
    let scene = createScene(service.url);
    writer = await scene.actor();
    for (let i = 0; i < 4; i++) conversations.push((await scene.group(writer, [])).id);
    for (let round = 0; round < 4; round++) {
      let on = true;
      const load = Promise.all(
        conversations.map(async (cid, lane) => {
          for (let n = 0; on; n++) {
            const key = `${round}-${lane}-${n}`;
            // What is cut off by a kill was acknowledged or not: the log says.
            const answer = await scene
              .server('POST', `/v1/conversations/${cid}/messages`, { clientMsgId: key, text: key })
              .catch(() => null);
            if (answer?.status !== 201) continue;
            sent.set(answer.body.id as string, key);
            const dice = random();
            const path = `/v1/messages/${answer.body.id}`;
            if (dice < 0.15)
              await scene
                .server('PATCH', path, { text: `${key} edited`, expectedVersion: 1 })
                .catch(() => null);
            else if (dice < 0.25) await scene.server('DELETE', path).catch(() => null);
            else if (dice < 0.3) await scene.server('DELETE', `${path}?hard=true`).catch(() => null);
          }
        }),
      );
      await delay(300 + random() * 500);
      if (round % 2 === 0) {
        await customer.kill();
        await delay(200 + random() * 400);
        await customer.start();
      } else {
        await service.kill();
      }
      on = false;
      await load;
      if (round % 2 === 1) {
        await db.close().catch(() => undefined);
        service = await service.restart();
        db = await openDb(service);
        scene = createScene(service.url);
      }
    }
    const storage = await openStorage(service, db);
    await db.query(`UPDATE storage SET due_at = '-infinity'`);
    await storage.settled();
    const client = new pg.Client(url.replace('?sslmode=disable', ''));
    await client.connect();
    const { rows: there } = await client.query(
      `SELECT id, seq::int, text, version, hard, deleted_at IS NOT NULL AS deleted, sender_id AS sender FROM parley_messages WHERE env = 'env_dev' ORDER BY id`,
    );
    await client.end();
    const here = await db.query<{ id: string }>(
      `SELECT m.id, m.seq::int AS seq, m.text, m.version, m.hard, m.deleted_at IS NOT NULL AS deleted, u.id AS sender FROM messages m
       JOIN environments e ON e.no = m.env LEFT JOIN users u ON u.env = m.env AND u.no = m.sender WHERE e.id = 'env_dev' ORDER BY m.id COLLATE "C"`,
    );
    assert.ok(here.length >= sent.size && sent.size > 20, `${sent.size} were acknowledged`);
    assert.deepEqual(
      there.sort((a, b) => (a.id < b.id ? -1 : 1)),
      here,
    );
    const kept = new Set(here.map((m) => m.id));
    for (const id of sent.keys()) assert.ok(kept.has(id), `${id} was acknowledged`);
    await db.close();
  } finally {
    await service.dispose();
  }
});
