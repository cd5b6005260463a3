import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { use, useService } from '../support/use.ts';
import { startCustomerPostgres } from './servers.ts';
import { eventually, inspect, openStorage } from './world.ts';

/** Promoting in both orders, modes in both directions, and minds that are changed on the way: no message is lost. */

const { service, scene, server, db, sql } = useService({ own: true });
const customer = use(startCustomerPostgres, (c) => c.stop());

/** A database with two gates: for as long as one is closed it does not take what was held, or is warm. */
async function gated(url: string) {
  const client = new pg.Client(url.replace(/\?.*/, ''));
  await client.connect();
  await client.query(`CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.text LIKE 'held%' THEN PERFORM pg_advisory_xact_lock(1); END IF;
    IF NEW.text = 'warm' THEN PERFORM pg_advisory_xact_lock(2); END IF; RETURN NEW; END $$`);
  await client.query(
    'CREATE TRIGGER gate BEFORE INSERT ON parley_messages FOR EACH ROW EXECUTE FUNCTION gate()',
  );
  return {
    close: (gate: number) => client.query('SELECT pg_advisory_lock($1)', [gate]),
    open: (gate: number) => client.query('SELECT pg_advisory_unlock($1)', [gate]),
    end: () => client.end(),
  };
}

test('history survives every change of mind', async () => {
  const storage = await openStorage(service, db);
  const [first, second, third] = [
    await customer.createDatabase(),
    await customer.createDatabase(),
    await customer.createDatabase(),
  ];
  await storage.connect(first);
  const writer = await scene.actor();
  const { id: cid } = await scene.group(writer, []);
  const texts: string[] = [];
  const say = async (text: string) => {
    texts.unshift(text);
    await scene.send(writer, cid, { text });
  };
  for (const text of ['held 1', '2', 'held 3', '4', '5']) await say(text);
  await storage.cool([cid]);
  // A conversation that has not left: it is copied from our own store.
  const { id: warm } = await scene.group(writer, []);
  await scene.send(writer, warm, { text: 'warm' });
  await storage.settled();

  const page = async (of = cid): Promise<string[]> => {
    const { status, body } = await server('GET', `/v1/conversations/${of}/messages?limit=50`);
    assert.equal(status, 200, JSON.stringify(body));
    return body.data.map((m: { text: string }) => m.text);
  };
  const inside = async (url: string, of = cid): Promise<(string | null)[]> => {
    const history = await inspect(url);
    const { data } = await history.read({ conversationId: of, limit: 50 });
    await history.close();
    return data.map((m) => m.text);
  };
  const ask = async (method: string, path: string, body?: object) => {
    const answer = await storage.api(method, `/v1/storage${path}`, body);
    assert.ok(answer.status < 300, JSON.stringify(answer.body));
    return answer.body;
  };
  const copying = (kind: string) =>
    eventually(async () => (await storage.record()).sink.copy?.kind === kind, `it copies: ${kind}`);

  // To b, and back while it moves: that cancels the move.
  assert.equal((await ask('POST', '/database/migrate', { adminUrl: second })).slot.type, 'postgres');
  const gate = await gated(second);
  await gate.close(1);
  await ask('POST', '/database/promote/b');
  await copying('move');
  await say('6, while it moves');
  assert.deepEqual(await page(), texts);
  assert.equal((await ask('POST', '/database/promote/a')).database.active, 'a');
  await gate.open(1);
  await storage.settled();
  assert.deepEqual([await page(), await inside(first)], [texts, texts]);

  // To b to its end: first what is cold, then what our store holds; in between the mode goes back and forth.
  await gate.close(2);
  await ask('POST', '/database/promote/b');
  await copying('fill');
  await ask('PATCH', '', { mode: 'managed' });
  await ask('PATCH', '', { mode: 'byo_db' });
  await gate.open(2);
  await storage.settled();
  assert.deepEqual([await page(), await inside(second)], [texts, texts]);
  assert.deepEqual(await inside(second, warm), ['warm']);
  await storage.cool([cid]);
  assert.deepEqual(await page(), texts);

  // The other order: from b to a, which is another database now.
  await ask('POST', '/database/migrate', { adminUrl: third });
  await ask('POST', '/database/promote/a');
  await say('7, while it moves back');
  await storage.settled();
  assert.deepEqual([await page(), await inside(third)], [texts, texts]);
  assert.deepEqual(await inside(third, warm), ['warm']);

  // Home, while the database hangs; then not after all; then home to the end.
  const holder = new pg.Client(third.replace(/\?.*/, ''));
  await holder.connect();
  await holder.query('BEGIN');
  await holder.query('LOCK TABLE parley_messages IN ACCESS EXCLUSIVE MODE');
  assert.equal((await ask('PATCH', '', { mode: 'managed' })).sink.copy.kind, 'return');
  assert.equal((await ask('PATCH', '', { mode: 'byo_db' })).mode, 'byo_db');
  await holder.query('ROLLBACK');
  await holder.end();
  await storage.settled();
  assert.deepEqual(await page(), texts);
  await ask('PATCH', '', { mode: 'managed' });
  await eventually(async () => (await storage.record()).mode === 'managed', 'all is home');
  // What a change leaves that was under way just then.
  await sql(
    `INSERT INTO sink_log (env, conv, seq, message, at) SELECT env, no, 2, 2, now() FROM conversations WHERE id = '${cid}'`,
  );
  assert.equal((await storage.record()).sink.backlog, 0, 'nobody waits for it');
  await gate.end();
  await customer.kill();
  assert.deepEqual([await page(), await page(warm)], [texts, ['warm']]);
  const [left] = await sql('SELECT count(*)::int AS n FROM messages WHERE id IS NULL AND NOT hard');
  assert.equal(left!['n'], 0);
});
