import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seed } from '../../../../scripts/seed.ts';
import { openHistory } from '../../src/platform/history/open.ts';
import { HistoryError } from '../../src/platform/history/port.ts';
import { createVault, loadMasterKey } from '../../src/platform/secrets.ts';
import { use, useService } from '../support/use.ts';
import { startHistoryReceiver } from './servers.ts';
import type { Receiver } from './servers.ts';
import { createWorker } from './worker.ts';
import type { Moment, Worker } from './worker.ts';
import { depsOf, openStorage } from './world.ts';

/**
 * A ledger of everything that was acknowledged, against both places. Two workers take turns; before each of their steps people send, edit
 * and delete, messages grow old, clocks jump, databases fail, leases run out and owners change their minds. At every moment each
 * acknowledged message is whole here or there.
 */

// The sinks are those of this file.
const { service, scene, server, db, sql } = useService({ env: { CHAT_ROLES: 'api,gateway' } });
const receivers = use(
  async () => ({ a: await startHistoryReceiver(), b: await startHistoryReceiver() }),
  ({ a, b }) => Promise.all([a.close(), b.close()]),
);

/** Park and Miller's: enough for dice. */
function randomFrom(start: number): () => number {
  let state = (start % 2_147_483_646) + 1;
  return () => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647;
}

interface Entry {
  id: string;
  cid: string;
  seq: number;
  text: string | null;
  version: number;
  /** A change is under way, or its answer was lost. */
  changing: boolean;
}

const days = 86_400_000;
const rounds = 25;

test('every acknowledged message is whole here or there at every moment, and at home in the end', async () => {
  const random = randomFrom(seed('history ledger'));
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!;
  const storage = await openStorage(service, db);
  const vault = createVault(await loadMasterKey(undefined, service.dataDir, false));
  const [env] = (await sql(`SELECT no, id FROM environments WHERE id = 'env_dev'`)) as {
    no: number;
    id: string;
  }[];
  const databases = {} as Record<'a' | 'b', Awaited<ReturnType<typeof openHistory>>>;
  for (const slot of ['a', 'b'] as const) {
    const receiver: Receiver = receivers[slot];
    const { body } = await storage.api('PUT', `/v1/storage/database/${slot}`, { url: receiver.url });
    receiver.secret = body.signingSecret as string;
    databases[slot] = await openHistory({ url: receiver.url, secrets: [receiver.secret] }, depsOf(env!.id));
    assert.equal((await storage.api('POST', '/v1/storage/database/test', { slot })).body.ok, true);
  }
  const writer = await scene.actor();
  const cids: string[] = [];
  for (let i = 0; i < 3; i++) cids.push((await scene.group(writer, [])).id);
  const ledger: Entry[] = [];
  const under: Promise<unknown>[] = [];
  const seen = { checked: 0, cold: 0, faults: 0, switches: 0 };

  async function send(): Promise<void> {
    const cid = pick(cids);
    const text = `t${ledger.length}-${Math.floor(random() * 1e6)}`;
    const { status, body } = await server('POST', `/v1/conversations/${cid}/messages`, { text });
    if (status === 201) ledger.push({ id: body.id, cid, seq: body.seq, text, version: 1, changing: false });
  }
  async function change(): Promise<void> {
    const free = ledger.filter((m) => !m.changing && m.text !== null);
    if (free.length === 0) return;
    const entry = pick(free);
    const gone = random() < 0.2;
    entry.changing = true;
    const text = `e${Math.floor(random() * 1e6)}`;
    const { status } = gone
      ? await server('DELETE', `/v1/messages/${entry.id}`)
      : await server('PATCH', `/v1/messages/${entry.id}`, { text, expectedVersion: entry.version });
    if (status === 429 || status === 503) entry.changing = false;
    if (status !== 200) return;
    Object.assign(entry, gone ? { text: null } : { text, version: entry.version + 1 }, { changing: false });
  }
  /** As if what a conversation and its log hold had happened ten days ago. */
  const grow = () =>
    db.tx(async (tx) => {
      const [conv] = await tx.query<{ no: number }>(
        'SELECT no FROM conversations WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED',
        [pick(cids)],
      );
      if (!conv) return;
      await tx.query(
        `UPDATE messages SET created_at = created_at - interval '10 days', edited_at = edited_at - interval '10 days', deleted_at = deleted_at - interval '10 days'
         WHERE env = $1 AND conv = $2 AND id IS NOT NULL`,
        [env!.no, conv.no],
      );
      await tx.query(`UPDATE sink_log SET at = at - interval '10 days' WHERE env = $1 AND conv = $2`, [
        env!.no,
        conv.no,
      ]);
    });
  async function decide(): Promise<void> {
    seen.switches++;
    const dice = random();
    // Refusals ("wait until that is done") are answers too.
    if (dice < 0.4)
      await storage.api('PATCH', '/v1/storage', { mode: random() < 0.75 ? 'byo_db' : 'managed' });
    else if (dice < 0.7) await storage.api('POST', '/v1/storage/database/resync');
    else await storage.api('POST', `/v1/storage/database/promote/${pick(['a', 'b'])}`);
  }

  /** Our store is read first: what has left it then was there before. */
  async function check(): Promise<void> {
    const known = ledger.filter((m) => !m.changing).map((m) => ({ entry: m, ...m }));
    const rows = await sql(
      `SELECT c.id AS cid, m.seq, m.id, m.text, m.version FROM messages m JOIN conversations c ON c.env = m.env AND c.no = m.conv WHERE c.id = ANY($1)`,
      [cids],
    );
    const here = new Map(rows.map((row) => [`${row['cid']} ${row['seq']}`, row]));
    for (const { entry, ...m } of known) {
      if (entry.changing || entry.version !== m.version || entry.text !== m.text) continue;
      const row = here.get(`${m.cid} ${m.seq}`);
      assert.ok(row, `${m.id} has a row`);
      seen.checked++;
      if (row['id'] !== null) {
        assert.deepEqual([row['id'], row['text'], row['version']], [m.id, m.text, m.version]);
        continue;
      }
      seen.cold++;
      const there = (['a', 'b'] as const).map((slot) => {
        const found = receivers[slot].store.environments.get(env!.id)?.message.get(m.id);
        return found && [found['text'], found['version']];
      });
      assert.ok(
        there.some((found) => found && found[0] === m.text && found[1] === m.version),
        `${m.id} (${m.cid} ${m.seq}, version ${m.version}) is empty here, and there is ${JSON.stringify(there)}`,
      );
    }
  }

  const workers: Worker[] = [];
  let depth = 0;
  let quiet = true;
  async function on(moment: Moment): Promise<void> {
    if (quiet) return;
    const dice = random();
    const locked = moment.at === 'tx';
    const run = async (work: Promise<unknown>): Promise<void> => {
      // Whoever waits for a lock of this transaction would wait for ever.
      if (locked) under.push(work);
      else await work;
    };
    if (dice < 0.2) await run(send());
    else if (dice < 0.28) await run(change());
    else if (dice < 0.33) await run(grow());
    else if (dice < 0.36) for (const { time } of workers) time.set((random() - 0.5) * 8 * days);
    else if (dice < 0.42) await run(check());
    else if (dice < 0.43 && !locked) await decide();
    else if (dice < 0.45 && !locked && depth < 2) {
      // As if this worker had been silent for too long.
      await sql(`UPDATE storage SET owned_until = clock_timestamp() - interval '1 second' WHERE env = $1`, [
        env!.no,
      ]);
      await turn(pick(workers));
    } else if (dice < 0.5 && (moment.at === 'write' || moment.at === 'written' || moment.at === 'read')) {
      seen.faults++;
      throw new HistoryError(pick(['unreachable', 'timeout', 'failed']), undefined);
    }
  }
  const turn = async (worker: Worker): Promise<void> => {
    depth++;
    await worker.turn(env!);
    depth--;
  };
  for (const node of ['one', 'two']) workers.push(createWorker({ db, vault, node, databases, on }));
  const pruneNow = () =>
    sql(
      `WITH c AS (UPDATE sink_conversations SET oldest_at = '-infinity') UPDATE storage SET pruned_at = '-infinity'`,
    );

  for (let i = 0; i < 20; i++) await send();
  await storage.api('PATCH', '/v1/storage', { mode: 'byo_db', bufferRetention: '24h' });
  for (let round = 0; round < rounds; round++) {
    quiet = false;
    if (random() < 0.3) await grow();
    if (random() < 0.6) await pruneNow();
    depth = 0;
    await turn(pick(workers));
    quiet = true;
    await Promise.all(under.splice(0));
    await check();
    // Now and then a turn without faults, so that copies end and messages can leave.
    if (random() < 0.5) await workers[0]!.turn(env!);
  }
  assert.ok(seen.cold > 0, JSON.stringify(seen));

  const settled = async (until: () => Promise<boolean>) => {
    for (let turns = 0; !(await until()); turns++) {
      assert.ok(turns < 100, 'it comes to an end');
      await workers[0]!.turn(env!);
    }
  };
  await settled(async () => (await storage.record()).sink.copy === null);
  await storage.api('PATCH', '/v1/storage', { mode: 'managed' });
  await settled(async () => (await storage.record()).mode === 'managed');
  await check();
  assert.deepEqual(await sql('SELECT seq FROM messages WHERE id IS NULL'), [], 'everything is at home');
  console.log(JSON.stringify({ ...seen, messages: ledger.length }));
});
