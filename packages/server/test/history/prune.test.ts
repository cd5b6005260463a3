import assert from 'node:assert/strict';
import { test } from 'node:test';
import { removeExpired } from '../../src/features/retention/retention.ts';
import { setReactions } from '../../src/features/reactions/sql.ts';
import { blocked } from '../../src/log/lanes.ts';
import { openHistory } from '../../src/platform/history/open.ts';
import type { Queryable } from '../../src/platform/postgres/db.ts';
import { createVault, loadMasterKey } from '../../src/platform/secrets.ts';
import type { Vault } from '../../src/platform/secrets.ts';
import { setUp, use, useService } from '../support/use.ts';
import { addEndpoint } from '../webhooks/tools.ts';
import { startHistoryReceiver } from './servers.ts';
import { createWorker } from './worker.ts';
import type { Moment } from './worker.ts';
import { depsOf, openStorage } from './world.ts';
import type { StorageWorld } from './world.ts';

/** docs/storage.md, "The buffer": a message leaves our store when the customer's database has confirmed it, whatever clocks say. */

// The sinks are those of this file.
const { service, server, scene, db, sql } = useService({ env: { CHAT_ROLES: 'api,gateway' } });
const receiver = use(startHistoryReceiver, (r) => r.close());
const days = 86_400_000;
let storage: StorageWorld;
let vault: Vault;
let env: { no: number; id: string };

setUp(async () => {
  vault = createVault(await loadMasterKey(undefined, service.dataDir, false));
  storage = await openStorage(service, db);
  const { body } = await storage.api('PUT', '/v1/storage/database/a', { url: receiver.url });
  receiver.secret = body.signingSecret as string;
  assert.equal((await storage.api('POST', '/v1/storage/database/test', {})).body.ok, true);
  [env] = (await sql(`SELECT no, id FROM environments WHERE id = 'env_dev'`)) as [typeof env];
  assert.equal(
    (await storage.api('PATCH', '/v1/storage', { mode: 'byo_db', bufferRetention: '24h' })).status,
    200,
  );
});

async function worker(node: string, on?: (moment: Moment) => Promise<void>) {
  const history = await openHistory({ url: receiver.url, secrets: [receiver.secret] }, depsOf(env.id));
  const made = createWorker({ db, vault, node, databases: { a: history }, ...(on ? { on } : {}) });
  return { ...made, turn: () => made.turn(env) };
}

/** Acknowledged messages that are neither here nor there. */
async function lost(cid: string): Promise<number[]> {
  const cold = await sql(
    `SELECT m.seq FROM messages m JOIN conversations c ON c.env = m.env AND c.no = m.conv WHERE c.id = $1 AND m.id IS NULL ORDER BY m.seq`,
    [cid],
  );
  const there = [...receiver.store.environments.get(env.id)!.message.values()].filter(
    (m) => m['conversationId'] === cid,
  );
  return cold.map((row) => Number(row['seq'])).filter((seq) => !there.some((m) => m['seq'] === seq));
}

const pruneNow = () =>
  sql(
    `WITH c AS (UPDATE sink_conversations SET oldest_at = '-infinity') UPDATE storage SET pruned_at = '-infinity'`,
  );

test('what commits while a worker whose clock is two days ahead prunes stays until it is confirmed', async () => {
  const { id: cid } = await scene.group(await scene.actor(), []);
  for (const text of ['one', 'two']) await scene.send(null, cid, { text });
  await (await worker('first')).turn();
  await pruneNow();
  let waiting = 3;
  const ahead = await worker('ahead', async (moment) => {
    // Between the look at what waits and the conversation's turn.
    if (moment.at === 'begin')
      while (waiting > 0) await scene.send(null, cid, { text: `later ${waiting--}` });
  });
  ahead.time.set(2 * days);
  await ahead.turn();
  assert.equal(waiting, 0);
  assert.deepEqual(await lost(cid), []);
});

test('a backlog older than the buffer stays, in whichever order its changes were noted', async () => {
  const { id: cid } = await scene.group(await scene.actor(), []);
  await scene.send(null, cid, { text: 'confirmed' });
  await (await worker('first')).turn();
  let written = false;
  const pruning = await worker('pruning', async (moment) => {
    if (moment.at !== 'begin' || written) return;
    written = true;
    for (const text of ['older', 'newer', 'latest']) await scene.send(null, cid, { text });
    // The transaction that made the older one noted it last, as transactions that run beside each other may.
    await sql(
      `WITH m AS (UPDATE messages SET created_at = now() - interval '10 days' + seq * interval '1 second'
         WHERE conv = (SELECT no FROM conversations WHERE id = $1) RETURNING env, conv, seq, created_at)
       , gone AS (DELETE FROM sink_log l USING m WHERE l.env = m.env AND l.conv = m.conv AND l.message = m.seq)
       INSERT INTO sink_log (env, conv, seq, message, at) SELECT env, conv, seq, seq, created_at FROM m WHERE seq > 2 ORDER BY seq DESC`,
      [cid],
    );
  });
  await pruneNow();
  await pruning.turn();
  assert.ok(written);
  assert.deepEqual(await lost(cid), []);
});

test('reactions#storage: a message leaves either before the first reaction to it, or after it was told', async () => {
  const anna = await scene.actor();
  const { id: cid } = await scene.group(anna, []);
  const sent: any[] = [];
  for (const text of ['one', 'two', 'latest']) sent.push(await scene.send(null, cid, { text }));
  // Those after the first of a conversation do not lock it.
  assert.equal((await anna.api('PUT', `/v1/messages/${sent[2].id}/reactions/:yes:`, {})).status, 200);
  await (await worker('first')).turn();
  const [conv] = await db.query<{ no: number; usr: number }>(
    'SELECT c.no, b.usr FROM conversations c JOIN members b ON b.env = c.env AND b.conv = c.no WHERE c.id = $1',
    [cid],
  );
  const cool = async (on: Queryable): Promise<unknown> =>
    (await on.query('SELECT cool_messages($1, $2, clock_timestamp(), 100) AS looked', [env.no, conv!.no]))[0];
  const react = async (on: Queryable, { seq }: { seq: number }): Promise<string> => {
    const [set] = await setReactions(
      on,
      [
        {
          env: env.no,
          conversationId: cid,
          conv: conv!.no,
          message: seq,
          user: conv!.usr,
          own: true,
          emoji: ':no:',
          on: true,
          replace: false,
        },
      ],
      null,
    );
    return set === blocked ? 'blocked' : set instanceof Error ? set.message : set!.status;
  };
  await db.tx(async (tx) => {
    assert.equal(await react(tx, sent[1]), 'ok');
    assert.deepEqual(await cool(db), { looked: 1 }, 'one leaves, and two stays');
    assert.equal(await react(db, sent[0]), 'cold');
  });
  assert.deepEqual(await cool(db), { looked: 0 }, 'two has not been told');

  const [bare, latest] = [await scene.send(null, cid), await scene.send(null, cid)];
  await (await worker('second')).turn();
  // As if both had been told, and long ago.
  await sql(
    `UPDATE message_reactions SET waiting = false, due_at = now() - interval '1 day' WHERE conv = $1`,
    [conv!.no],
  );
  await db.tx(async (tx) => {
    assert.deepEqual(await cool(tx), { looked: 3 });
    assert.equal(await react(db, sent[2]), 'blocked');
    assert.equal(await react(db, bare), 'blocked', 'nobody has reacted to it before');
    assert.equal(await react(db, latest), 'ok');
  });
  assert.deepEqual([await react(db, sent[2]), await react(db, bare)], ['cold', 'cold']);
});

test('webhooks#replay: a message stays as long as an endpoint may show it, also one that is disabled', async () => {
  const endpoint = await addEndpoint(server, receiver.url, ['message.created']);
  assert.equal((await server('PATCH', `/v1/webhooks/${endpoint.id}`, { status: 'disabled' })).status, 200);
  const { id: cid } = await scene.group(await scene.actor(), []);
  for (const text of ['one', 'latest']) await scene.send(null, cid, { text });
  await sql(
    `UPDATE messages SET created_at = now() - interval '6 days' WHERE conv = (SELECT no FROM conversations WHERE id = $1)`,
    [cid],
  );
  const gone = () =>
    sql(
      'SELECT m.seq FROM messages m JOIN conversations c ON c.env = m.env AND c.no = m.conv WHERE c.id = $1 AND m.id IS NULL',
      [cid],
    );
  await (await worker('first')).turn();
  await pruneNow();
  await (await worker('first')).turn();
  assert.deepEqual(await gone(), []);
  assert.equal((await server('DELETE', `/v1/webhooks/${endpoint.id}`)).status, 204);
  await pruneNow();
  await (await worker('first')).turn();
  assert.equal((await gone()).length, 1);
});

test('storage#sink: who left while the database was away is no member there, though the event is no longer kept', async () => {
  const [owner, guest] = [await scene.actor(), await scene.actor()];
  const { id: cid } = await scene.group(owner, [guest]);
  const removed = () =>
    [...receiver.store.environments.get(env.id)!.member.values()].find(
      (m) => m['conversationId'] === cid && m['userId'] === guest.id,
    )?.['removed'];
  await (await worker('first')).turn();
  assert.equal(removed(), false);
  assert.equal((await owner.api('DELETE', `/v1/conversations/${cid}/members/${guest.id}`)).status, 204);
  await sql(
    `UPDATE events SET created_at = created_at - interval '2 days' WHERE conv = (SELECT no FROM conversations WHERE id = $1)`,
    [cid],
  );
  await removeExpired(db, 7 * days);
  await (await worker('first')).turn();
  assert.equal(removed(), true);
});
