import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { readBatch } from '../../src/features/storage/copy.ts';
import type { Copy } from '../../src/features/storage/sql.ts';
import { createScene } from '../support/scene.ts';
import { startService } from '../support/service.ts';
import { openDb, use } from '../support/use.ts';
import { startCustomerPostgres } from './servers.ts';
import { eventually, fill, openStorage } from './world.ts';

/** storage#mode: what is copied in the background shows how far it is, goes on after a crash, and can be cancelled. */

const customer = use(startCustomerPostgres, (c) => c.stop());
/** Six batches. The third stops at this message, for as long as the test holds the gate. */
const count = 3_000;
const gate = 1_200;
/** A cancelled copy ends with the two batches that are being written, and the one that was read meanwhile. */
const mostAfterCancel = 2_500;

test('a copy shows how far it is, can be cancelled, and goes on after a crash where it was', async () => {
  let service = await startService();
  let db = await openDb(service);
  const url = await customer.createDatabase();
  const there = new pg.Client(url.replace(/\?.*/, ''));
  await there.connect();
  try {
    const scene = createScene(service.url);
    const writer = await scene.actor();
    const { id: cid } = await scene.group(writer, []);
    await fill(db, cid, count);
    let storage = await openStorage(service, db);
    const made = await storage.api('POST', '/v1/storage/database/migrate', { adminUrl: url });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    await there.query(`CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NEW.seq = ${gate} THEN PERFORM pg_advisory_xact_lock(1); END IF; RETURN NEW; END $$`);
    await there.query(
      'CREATE TRIGGER gate BEFORE INSERT ON parley_messages FOR EACH ROW EXECUTE FUNCTION gate()',
    );
    await there.query('SELECT pg_advisory_lock(1)');
    const copied = async (): Promise<number> =>
      (await there.query('SELECT count(*)::int AS n FROM parley_messages WHERE conversation_id = $1', [cid]))
        .rows[0].n as number;
    const halfway = () =>
      eventually(async () => {
        const { copy } = (await storage.record()).sink;
        return copy?.done >= 900 && copy;
      }, 'a part is copied');

    assert.equal((await storage.api('PATCH', '/v1/storage', { mode: 'byo_db' })).status, 200);
    const { kind, done, total, percent, rowsPerSecond, secondsLeft } = await halfway();
    assert.deepEqual([kind, total], ['fill', count]);
    assert.ok(done < gate, `${done}`);
    assert.equal(percent, Math.round((done / total) * 1_000) / 10);
    assert.ok(rowsPerSecond > 0, `${rowsPerSecond}`);
    assert.equal(secondsLeft, Math.round((total - done) / rowsPerSecond));

    const back = await storage.api('PATCH', '/v1/storage', { mode: 'managed' });
    assert.deepEqual([back.status, back.body.mode, back.body.sink.copy], [200, 'managed', null]);
    await there.query('SELECT pg_advisory_unlock(1)');
    await eventually(
      async () => (await db.query(`SELECT 1 FROM storage WHERE owned_until < clock_timestamp()`)).length > 0,
      'the turn under way ends',
    );
    const left = await copied();
    assert.ok(left >= done && left <= mostAfterCancel, `${left}`);
    assert.equal((await storage.record()).sink.status, 'idle');

    // Once more, from the start; and in the middle a crash.
    await there.query('DELETE FROM parley_messages');
    // More conversations than one look finds, and batches that end inside of one.
    for (const { id } of await Promise.all(Array.from({ length: 60 }, () => scene.group(writer, []))))
      await fill(db, id, 19);
    await there.query('SELECT pg_advisory_lock(1)');
    assert.equal((await storage.api('PATCH', '/v1/storage', { mode: 'byo_db' })).status, 200);
    const before = await halfway();
    // What waits for a commit on disk takes with it what does not.
    await scene.send(writer, (await scene.group(writer, [])).id);
    await service.kill();
    await db.close().catch(() => undefined);
    await there.query('DELETE FROM parley_messages WHERE conversation_id = $1 AND seq = 10', [cid]);
    service = await service.restart();
    db = await openDb(service);
    storage = await openStorage(service, db);
    const resumed = (await storage.record()).sink.copy;
    assert.ok(resumed.done >= before.done && resumed.done < gate, `${resumed.done} after ${before.done}`);
    assert.equal(resumed.startedAt, before.startedAt);
    await there.query('SELECT pg_advisory_unlock(1)');
    // Of the process that was killed: nobody waits for its end here.
    await db.query(`UPDATE storage SET owned_until = '-infinity'`);
    await storage.settled();
    assert.equal(
      await copied(),
      count - 1,
      'all but the one that was confirmed before: it went on where it was',
    );
    assert.equal((await storage.api('POST', '/v1/storage/database/resync')).status, 202);
    await storage.settled();
    assert.equal(await copied(), count);
    const [here] = await db.query(
      `SELECT (SELECT count(*)::int FROM messages WHERE env = e.no) AS messages, (SELECT count(*)::int FROM conversations WHERE env = e.no) AS conversations
       FROM environments e WHERE e.id = 'env_dev'`,
    );
    const { rows } = await there.query(
      'SELECT (SELECT count(*)::int FROM parley_messages) AS messages, (SELECT count(*)::int FROM parley_conversations) AS conversations',
    );
    assert.deepEqual(rows, [here]);
  } finally {
    await there.end();
    await db.close().catch(() => undefined);
    await service.dispose();
  }
});

test('a batch of a copy ends before its conversations have too many people, present and former', async () => {
  const service = await startService();
  const db = await openDb(service);
  try {
    const scene = createScene(service.url);
    const writer = await scene.actor();
    const groups = [];
    for (let i = 0; i < 6; i++) groups.push((await scene.group(writer, [])).id);
    const [at] = await db.query<{ env: number; conv: number }>(
      'SELECT env, min(no) AS conv FROM conversations WHERE id = ANY($1) GROUP BY env',
      [groups],
    );
    const { env, conv } = at!;
    await db.query(`INSERT INTO users (env, id) SELECT $1, 'left_' || g FROM generate_series(1, 6000) g`, [
      env,
    ]);
    // The first alone has more than a batch may have; of the others, two have about as many.
    await db.query(
      `INSERT INTO departures (env, usr, conv, at) SELECT u.env, u.no, c.no, clock_timestamp() FROM conversations c
       JOIN users u ON u.env = c.env AND u.id LIKE 'left\\_%' AND (c.no = $3 OR substr(u.id, 6)::int <= 2400) WHERE c.env = $1 AND c.id = ANY($2)`,
      [env, groups, conv],
    );
    const sizes: number[] = [];
    const ahead: { no: number; id: string; flags: number }[] = [];
    let next: Copy | null = { kind: 'fill', conv, seq: 0, done: 0, total: 0, startedAt: '' };
    const seen = new Set<number>();
    while (next) {
      const batch = await readBatch(
        { db, env, history: null as never, previous: null, size: 500, ahead },
        next,
      );
      if (batch.records.length > 0) sizes.push(batch.records.length);
      for (const one of batch.records) if (one.record.kind === 'conversation') seen.add(one.conv);
      next = batch.next;
    }
    assert.equal(seen.size, 6);
    // Each conversation and its writer count too.
    assert.deepEqual(sizes, [6_002, 4_804, 4_804, 2_402]);
  } finally {
    await db.close();
    await service.dispose();
  }
});
