import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allSeqs } from '../../src/platform/history/conformance.ts';
import { PgDb } from '../../src/platform/postgres/db.ts';
import { useStandingHere } from '../gateway/here.ts';
import type { Answer } from '../support/api.ts';
import { createScene } from '../support/scene.ts';
import { use } from '../support/use.ts';
import { startReceiver } from '../webhooks/receiver.ts';
import { startSmtp } from '../webhooks/smtp.ts';
import { addEndpoint } from '../webhooks/tools.ts';
import { startCustomerPostgres } from './servers.ts';
import { eventually, inspect, openStorage } from './world.ts';

/** storage#sink: a customer's database that is away for more than an hour of the store's time. */

const customer = use(startCustomerPostgres, (c) => c.stop());
const receiver = use(startReceiver, (r) => r.close());
const smtp = use(startSmtp, (s) => s.close());
const { here, time } = useStandingHere({
  env: () => ({ CHAT_ALLOW_PRIVATE_TARGETS: 'true', CHAT_SMTP_URL: smtp.url, CHAT_LOG_LEVEL: 'silent' }),
});

/** As if minutes had passed for what the sink has stored. */
const later = (db: PgDb, minutes: number): Promise<unknown> =>
  db.query(
    `WITH log AS (UPDATE sink_log SET at = at - $1 * interval '1 minute')
     UPDATE storage SET since = since - $1 * interval '1 minute', due_at = due_at - $1 * interval '1 minute'`,
    [minutes],
  );

/** Lets time pass beside the work, so that whatever waits in it goes on. */
async function passing<T>(work: () => Promise<T>): Promise<T> {
  const timer = setInterval(() => time.advance(250), 10);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

test('an hour of outage under load: degraded, failing and recovered are told once each, and nothing is lost', async () => {
  const db = new PgDb({ connectionString: here.databaseUrl }, { max: 2, onError: () => undefined });
  const scene = createScene(here.url);
  const storage = await openStorage(here, db);
  const url = await customer.createDatabase();
  await passing(() => storage.connect(url));
  await addEndpoint(scene.server, receiver.url, ['sink.degraded', 'sink.failing', 'sink.recovered']);
  const writer = await scene.actor();
  const { id: cid } = await scene.group(writer, []);
  await passing(() => storage.settled());
  const tries = async (): Promise<number> =>
    (await db.query<{ failures: number }>('SELECT sum(failures)::int AS failures FROM storage'))[0]!.failures;

  const sent: string[] = [];
  let on = true;
  const load = (async () => {
    while (on) {
      const text = `n${sent.length}`;
      const answer = await scene
        .server('POST', `/v1/conversations/${cid}/messages`, { text }, { 'idempotency-key': text })
        .catch((error: unknown) => error);
      // A connection that rests for minutes is reset, and minutes pass at once here: then the same is sent again.
      if (!(answer instanceof TypeError)) {
        const { status, body } = answer as Answer;
        if (status === 201) sent.push(body.id as string);
        // While time stands, the key's rate can be used up.
        else assert.equal(status, 429, JSON.stringify(body));
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
  try {
    await customer.kill();
    const seen: string[] = [];
    for (let minutes = 0, failed = 0; minutes < 72; minutes += 4) {
      await passing(() => eventually(async () => (await tries()) > failed, `a try at minute ${minutes}`));
      failed = await tries();
      const [row] = await db.query<{ status: string }>("SELECT status FROM storage WHERE mode = 'byo_db'");
      if (seen.at(-1) !== row!.status) seen.push(row!.status);
      await later(db, 4);
    }
    assert.deepEqual(seen, ['healthy', 'degraded', 'failing']);
    const before = sent.length;
    await passing(() => eventually(() => Promise.resolve(sent.length > before), 'sends go on meanwhile'));
    on = false;
    await load;
    await customer.start();
    await later(db, 4);
    await passing(() => receiver.next('sink.recovered'));
    await passing(() => storage.settled());
  } finally {
    on = false;
    await load.catch(() => undefined);
  }
  const [degraded, failing, recovered, ...more] = receiver.received.filter((r) => r.type.startsWith('sink.'));
  assert.deepEqual(
    [degraded?.type, failing?.type, recovered?.type, more],
    ['sink.degraded', 'sink.failing', 'sink.recovered', []],
  );
  assert.ok(degraded!.data.lagSeconds > 300, JSON.stringify(degraded!.data));
  assert.ok(failing!.data.errorClass, JSON.stringify(failing!.data));
  const told = await eventually(
    () => Promise.resolve(smtp.mails.length >= 3 && smtp.mails),
    'the owner has three mails',
  );
  assert.deepEqual(
    told.map((mail) => /history database of env_dev (.*)/.exec(mail)?.[1]),
    ['falls behind', 'cannot be written', 'works again'],
  );
  const history = await inspect(url);
  assert.equal((await allSeqs(history, cid)).length, sent.length);
  await history.close();
  await db.close();
});

test('a process whose clock is two days ahead sees the same lag: all times of a sink are by the store’s clock', async () => {
  const db = new PgDb({ connectionString: here.databaseUrl }, { max: 2, onError: () => undefined });
  const scene = createScene(here.url);
  const { id: cid } = await scene.group(await scene.actor(), []);
  await customer.kill();
  time.set(2 * 24 * 3_600_000);
  await scene.send(null, cid);
  const failed = () => db.query('SELECT 1 FROM storage WHERE failures > 0');
  await passing(() => eventually(async () => (await failed()).length > 0, 'a try fails'));
  const { sink } = (await scene.server('GET', '/v1/analytics')).body.storage;
  assert.equal(sink.status, 'healthy');
  assert.ok(sink.lagSeconds < 24 * 3_600, `it lags ${sink.lagSeconds} s`);
  await db.close();
});
