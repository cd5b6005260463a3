import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { openVault } from '../../src/features/accounts/master-key.ts';
import { slotContext } from '../../src/features/storage/sql.ts';
import { erasedContext } from '../../src/features/webhooks/signature.ts';
import { PgDb } from '../../src/platform/postgres/db.ts';
import { createVault, fingerprintOf, macKeyOf } from '../../src/platform/secrets.ts';
import type { Vault } from '../../src/platform/secrets.ts';
import { sealedTables } from '../../src/reseal/columns.ts';
import { rotate } from '../../src/reseal/rotate.ts';
import { portion } from '../../src/reseal/sql.ts';
import { createDashboard, owner, signedInOwner } from '../accounts/dashboard.ts';
import { totpApp } from '../accounts/totp-app.ts';
import { startHistoryReceiver } from '../history/servers.ts';
import { until } from '../start/npm-start.ts';
import { createApi, serverApi } from '../support/api.ts';
import { startPostgres } from '../support/postgres.ts';
import { inherited, startService } from '../support/service.ts';
import type { Service } from '../support/service.ts';
import { use } from '../support/use.ts';
import { startReceiver, verify } from '../webhooks/receiver.ts';
import { addEndpoint } from '../webhooks/tools.ts';

/** docs/operations/master-key.md, step by step, with nodes of neighbouring steps side by side. */

const [older, newer] = [randomBytes(32), randomBytes(32)];
const [o, n] = [older, newer].map((key) => key.toString('base64')) as [string, string];
const cli = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));

const store = use(
  async () => {
    const postgres = await startPostgres();
    return { url: await postgres.createDatabase(), stop: () => postgres.stop() };
  },
  ({ stop }) => stop(),
);
const receivers = use(
  async () => ({ webhooks: await startReceiver(), history: await startHistoryReceiver() }),
  async ({ webhooks, history }) => {
    await webhooks.close();
    await history.close();
  },
);

const started: Service[] = [];
after(async () => {
  await Promise.all(started.map((one) => one.dispose()));
});
/** Without workers, so that nothing but the rotation touches the rows; the last node has all roles. */
async function start(env: Record<string, string>): Promise<Service> {
  const one = await startService({
    env: {
      DATABASE_URL: store.url,
      CHAT_ALLOW_PRIVATE_TARGETS: 'true',
      CHAT_ROLES: 'api,gateway',
      ...env,
    },
  });
  started.push(one);
  return one;
}

const connected = async <T>(run: (db: PgDb) => Promise<T>): Promise<T> => {
  const db = new PgDb({ connectionString: store.url }, { max: 2, onError: () => undefined });
  try {
    return await run(db);
  } finally {
    await db.close();
  }
};
/** What a process with these keys does first. */
const opened = (db: PgDb, masterKey: string, keys: { previous?: string; next?: string } = {}) =>
  openVault(
    db,
    { masterKey, masterKeyPrevious: keys.previous, masterKeyNext: keys.next, dataDir: '/nowhere' },
    (key) => db.announce(key),
  );
const refused = (masterKey: string, keys: { previous?: string; next?: string }, says: RegExp) =>
  connected((db) => assert.rejects(opened(db, masterKey, keys), { message: says }));

/** Every sealed value of the store in the clear, by its place. */
const values = (vault: Vault): Promise<Map<string, string>> =>
  connected(async (db) => {
    const found = new Map<string, string>();
    for (const table of sealedTables)
      for (const row of await portion(db, table, undefined, 10_000))
        for (const column of table.columns) {
          const value = row[column] as Buffer | string | null;
          if (value === null) continue;
          const bytes = typeof value === 'string' ? Buffer.from(value, 'base64') : value;
          const place = Object.keys(table.key)
            .map((name) => (Buffer.isBuffer(row[name]) ? '' : row[name]))
            .join(' ');
          found.set(
            `${table.table}.${column} ${place}`,
            vault.open(bytes, table.context(row)).toString('hex'),
          );
        }
    return found;
  });

const many = 1_200;

/** Rows that no operation of this test makes, sealed as their features do. */
const fill = (): Promise<void> =>
  connected(async (db) => {
    const vault = createVault(older);
    const [env] = await db.query<{ no: number }>(`SELECT no FROM environments WHERE id = 'env_other'`);
    const { no } = env!;
    const later = new Date('2100-01-01');
    await db.query(`INSERT INTO push_credentials (env, provider, sealed) VALUES ($1, 'expo', $2)`, [
      no,
      vault.seal('{"accessToken":"x"}', `push credentials ${no} expo`),
    ]);
    await db.query(
      `INSERT INTO media_storages (env, provider, config, shown, created_at) VALUES ($1, 's3', $2, '{}', now())`,
      [no, vault.seal('{}', `media storage ${no}`)],
    );
    const [hook] = await db.query<{ no: number }>(
      `INSERT INTO hooks (env, kind, url, timeout_ms, on_failure, edits, servers, created_at, updated_at)
       VALUES ($1, 'before-send', 'http://127.0.0.1:9/', 1000, 'allow', true, false, now(), now()) RETURNING no`,
      [no],
    );
    await db.query('INSERT INTO hook_secrets (hook, secret) VALUES ($1, $2)', [
      hook!.no,
      vault.seal('x', `hook ${hook!.no}`),
    ]);
    await db.query(
      `INSERT INTO reports (env, id, head, reporter, kind, target, seq, version, reason, status, at, snapshot)
       VALUES ($1, 'rep_1', 'rep_1', 1, 'message', 1, 1, 1, 'spam', 'open', now(), $2)`,
      [no, vault.seal('{}', `report ${no} rep_1`)],
    );
    const erased = (id: string) => vault.seal(id, erasedContext(no));
    await db.query(
      `INSERT INTO sink_erasures (env, subject, replacement, messages, created_at) VALUES ($1, $2, 'x', 'keep', now())`,
      [no, erased('ann')],
    );
    await db.query(
      `INSERT INTO outbox (id, env, type, sealed, created_at, due_at) VALUES ('evt_1', $1, 'user.deleted', $2, now(), $3)`,
      [no, erased('bob'), later],
    );
    await db.query(
      `INSERT INTO webhook_deliveries (id, env, endpoint, event_id, type, sealed, event_at, created_at, status)
       VALUES ('dlv_1', $1, 1, 'evt_0', 'user.deleted', $2, now(), now(), 'succeeded')`,
      [no, erased('cid')],
    );
    await db.query(`INSERT INTO jobs (queue, key, run_at, data) VALUES ('mail', 1, $1, to_jsonb($2::text))`, [
      later,
      vault.seal('{}', 'account mail').toString('base64'),
    ]);
    await db.query(`UPDATE storage_slots SET replica_url = $1 WHERE env = $2 AND slot = 'a'`, [
      vault.seal('postgres://replica', slotContext(no, 'a')),
      no,
    ]);
    const keys = Array.from({ length: many }, (_, i) => `k${String(i).padStart(4, '0')}`);
    await db.query(
      `INSERT INTO idempotency (env, key, route, fingerprint, status, body)
       SELECT $1, w.key, '\\x00', '\\x00', 200, w.body FROM unnest($2::text[], $3::bytea[]) AS w(key, body)`,
      [no, keys, keys.map((key) => vault.seal('{}', `idempotency ${no} ${key}`))],
    );
  });

/** `parley master-key rotate` as an operator calls it. */
function rotateCommand() {
  const child = spawn(process.execPath, [cli, 'master-key', 'rotate', '--json'], {
    env: { ...inherited, DATABASE_URL: store.url, CHAT_MASTER_KEY: n, CHAT_MASTER_KEY_PREVIOUS: o },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = Promise.all([text(child.stdout), text(child.stderr)]);
  return {
    kill: () => child.kill('SIGKILL'),
    ended: once(child, 'exit').then(async ([code]) => {
      const [stdout, stderr] = await said;
      return { code: code as number | null, stdout, stderr };
    }),
  };
}

describe('the rotation of the master key', () => {
  let first: Service;
  let second: Service;
  let app: ReturnType<typeof totpApp>;
  let endpoint: { id: string; secret: string };
  let madeBySecond: string;
  const group = { type: 'group', name: 'once', members: ['ann'] };
  const sameKey = { 'idempotency-key': 'the-same' };
  let firstAnswer: unknown;
  let before: Map<string, string>;

  test('nodes that seal with either key serve what the other has sealed', async () => {
    first = await start({ CHAT_MASTER_KEY: o, CHAT_MASTER_KEY_NEXT: n });
    const me = await signedInOwner(first.url);
    const { body } = await me.api('POST', '/v1/account/totp');
    app = totpApp(body.uri as string);
    assert.equal((await me.api('POST', '/v1/account/totp/confirm', { code: app() })).status, 200);
    const server = serverApi(first.url);
    endpoint = await addEndpoint(server, receivers.webhooks.url, ['message.created']);
    firstAnswer = (await server('POST', '/v1/conversations', group, sameKey)).body;
    const slot = await me.in('env_other')('PUT', '/v1/storage/database/a', { url: receivers.history.url });
    assert.equal(slot.status, 200, JSON.stringify(slot.body));
    receivers.history.secret = slot.body.signingSecret as string;
    await fill();

    second = await start({ CHAT_MASTER_KEY: n, CHAT_MASTER_KEY_PREVIOUS: o });
    assert.equal((await serverApi(second.url)('GET', '/v1/users')).status, 200, 'a key of the older one');
    const again = await serverApi(second.url)('POST', '/v1/conversations', group, sameKey);
    assert.deepEqual(again.body, firstAnswer, 'an answer that the first has stored');
    const them = createDashboard(second.url);
    them.cookie = me.cookie;
    const made = await them.in('env_dev')('POST', '/v1/keys', { name: 'new' });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    madeBySecond = made.body.secretKey as string;
    assert.equal((await createApi(first.url, madeBySecond)('GET', '/v1/users')).status, 200, 'and back');
  });

  test('it is refused while a process seals with the older key, and keys that do not open everything are', async () => {
    await refused(o, {}, /not finished: values in this store may be sealed with the key [0-9a-f]{12}/);
    await refused(n, {}, /sealed with another master key/);
    await refused(randomBytes(32).toString('base64'), { previous: o }, /not finished/);
    const { code, stderr } = await rotateCommand().ended;
    assert.equal(code, 2, stderr);
    assert.match(stderr, new RegExp(`another key than ${fingerprintOf(newer)}.*key ${fingerprintOf(older)}`));
    assert.equal(await first.stop(), 0);
  });

  test('killed in the middle, it leaves a store that serves and that both keys are needed for', async () => {
    before = await values(createVault(() => ({ current: newer, others: [older], mac: macKeyOf(older) })));
    const columns = sealedTables.flatMap(({ table, columns: names }) => names.map((c) => `${table}.${c}`));
    const seen = new Set([...before.keys()].map((place) => place.split(' ')[0]));
    assert.deepEqual([...seen].sort(), columns.sort(), 'each sealed column has a value');

    const holder = new pg.Client({ connectionString: store.url });
    await holder.connect();
    try {
      // A row of the second portion of its table: the rotation waits there.
      await holder.query(`BEGIN; SELECT 1 FROM idempotency WHERE key = 'k0700' FOR UPDATE`);
      const running = rotateCommand();
      const vault = createVault(newer);
      await until(async () => {
        const { rows } = await holder.query<{ env: number; body: Buffer }>(
          `SELECT env, body FROM idempotency WHERE key = 'k0000'`,
        );
        try {
          vault.open(rows[0]!.body, `idempotency ${rows[0]!.env} k0000`);
          return true;
        } catch {
          return false;
        }
      });
      running.kill();
      assert.notEqual((await running.ended).code, 0);
    } finally {
      await holder.query('ROLLBACK');
      await holder.end();
    }
    await refused(n, {}, /not finished/);
    await refused(o, { next: n }, /moved to the key of CHAT_MASTER_KEY_NEXT/);
    assert.equal((await createApi(second.url, madeBySecond)('GET', '/v1/users')).status, 200);
  });

  test('repeated, it seals the rest; every value opens with the new key alone', async () => {
    const { code, stdout, stderr } = await rotateCommand().ended;
    assert.equal(code, 0, stderr);
    const done = JSON.parse(stdout) as { key: string; resealed: number; checked: number };
    assert.equal(done.key, fingerprintOf(newer));
    assert.ok(done.resealed >= many - 700 && done.resealed < done.checked, stdout);
    assert.deepEqual(await values(createVault(newer)), before);
    await connected(async (db) => {
      const more = await rotate(db, await opened(db, n, { previous: o }));
      assert.equal(more.resealed, 0, 'there is nothing left to do');
    });
  });

  test('afterwards the new key alone serves, and the older one opens nothing', async () => {
    assert.equal(await second.stop(), 0);
    await refused(o, {}, /sealed with another master key/);
    await connected(async (db) => {
      const { vault } = await opened(db, n);
      assert.deepEqual(vault.mac('user 1 ann'), createVault(older).mac('user 1 ann'), 'erased ids are known');
    });
    const last = await start({ CHAT_MASTER_KEY: n, CHAT_ROLES: 'api,gateway,worker' });
    const server = serverApi(last.url);
    assert.deepEqual((await server('POST', '/v1/conversations', group, sameKey)).body, firstAnswer);
    assert.equal((await createApi(last.url, madeBySecond)('GET', '/v1/users')).status, 200);

    const { id } = firstAnswer as { id: string };
    const sent = await server('POST', `/v1/conversations/${id}/messages`, { senderId: 'ann', text: 'hello' });
    assert.equal(sent.status, 201, JSON.stringify(sent.body));
    verify(endpoint.secret, await receivers.webhooks.next('message.created'));

    const me = createDashboard(last.url);
    // The step after this one, because the code of this one may be used up.
    await me.signIn(owner.email, owner.password, app(Date.now() + 30_000));
    const tried = await me.in('env_other')('POST', '/v1/storage/database/test', { slot: 'a' });
    assert.equal(tried.body.ok, true, JSON.stringify(tried.body));
  });
});
