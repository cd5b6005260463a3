import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { AuditEntry } from '@parley/protocol';
import { dashboardCaller, operatorCaller } from '../../src/features/callers.ts';
import type { ControlContext, EnvironmentContext } from '../../src/features/context.ts';
import { commands } from '../../src/features/commands.ts';
import { removeExpired } from '../../src/features/retention/retention.ts';
import { findEnvironment } from '../../src/features/tenancy/sql/environments.ts';
import { createIds, pooledRandom, systemClock } from '../../src/platform/clock.ts';
import { createVault, loadMasterKey } from '../../src/platform/secrets.ts';
import { serverApi } from '../support/api.ts';
import { parley } from '../support/cli.ts';
import { setUp, useService } from '../support/use.ts';

/** dashboard#audit: every change is recorded, in the transaction of the change, without secrets. */

const { service, db } = useService({ own: true });
let ctx: ControlContext;
let dev: EnvironmentContext;
setUp(async () => {
  const ids = createIds(systemClock, pooledRandom());
  const vault = createVault(await loadMasterKey(undefined, service.dataDir, false));
  ctx = {
    caller: operatorCaller('tester'),
    services: { clock: systemClock, ids, vault, linkOrigin: () => 'http://localhost' },
    db,
    requestId: ids.make('request'),
  };
  dev = { ...ctx, env: (await findEnvironment(db, 'env_dev'))! };
});

const list = async (input = {}): Promise<AuditEntry[]> =>
  ((await commands['audit.list'](ctx, { limit: 200, ...input })) as { data: AuditEntry[] }).data;
/** What `run` adds to the record, oldest first. */
async function added(run: () => Promise<unknown>): Promise<AuditEntry[]> {
  const known = (await list()).length;
  await run();
  return (await list()).slice(0, -known).reverse();
}
const brief = ({ action, target, environmentId }: AuditEntry) => [action, target, environmentId];

test('the command line records what it changes: who, what, where, before and after', async () => {
  const actor = `operator:${userInfo().username}`;
  const directory = await mkdtemp(join(tmpdir(), 'parley-audit-'));
  try {
    const file = join(directory, 'expo.json');
    await writeFile(file, JSON.stringify({ accessToken: 'expo-Secret-0123456789' }));
    let secretKey = '';
    const entries = await added(async () => {
      const made = await parley(
        service,
        'env',
        'create',
        '--name',
        'Shop',
        '--kind',
        'production',
        '--id',
        'env_shop',
      );
      secretKey = made.secretKey;
      await parley(service, 'env', 'set', 'env_shop', '--status', 'suspended', '--push', 'webhook');
      await parley(service, 'key', 'revoke', 'env_shop', secretKey.split('_')[2]!);
      await parley(service, 'push', 'set', 'env_shop', 'expo', file);
      await parley(service, 'push', 'remove', 'env_shop', 'expo');
    });
    assert.deepEqual(entries.map(brief), [
      ['environments.create', 'env_shop', 'env_shop'],
      ['keys.create', secretKey.split('_')[2], 'env_shop'],
      ['environments.update', 'env_shop', 'env_shop'],
      ['keys.revoke', secretKey.split('_')[2], 'env_shop'],
      ['push.setCredentials', 'expo', 'env_shop'],
      ['push.removeCredentials', 'expo', 'env_shop'],
    ]);
    for (const entry of entries) {
      assert.deepEqual([entry.actor, entry.ip], [actor, null]);
      assert.match(entry.requestId, /^req_/);
      assert.match(entry.organizationId, /^org_/);
      assert.ok(Math.abs(Date.parse(entry.at) - Date.now()) < 600_000);
    }
    assert.equal(new Set(entries.slice(0, 2).map((e) => e.requestId)).size, 1, 'one command, one request');
    assert.deepEqual(entries[2]!.changes, {
      before: { status: 'active', pushMode: 'providers' },
      after: { status: 'suspended', pushMode: 'webhook' },
    });
    assert.equal(entries[0]!.changes.before, null);
    assert.equal(entries[0]!.changes.after!['name'], 'Shop');
    assert.equal(entries[5]!.changes.after, null);
    const text = JSON.stringify(entries);
    for (const secret of [secretKey.split('_')[3]!, 'expo-Secret'])
      assert.equal(text.includes(secret), false);
    const shown: AuditEntry[] = await parley(service, 'audit', 'list', 'env_shop', '--action', 'keys.revoke');
    assert.deepEqual(shown, [entries[3]]);
  } finally {
    await rm(directory, { recursive: true });
  }
});

test('the first start is recorded too', async () => {
  const created = await list({ actor: 'operator:first start', action: 'environments.create' });
  assert.deepEqual(created.map((e) => e.target).sort(), ['env_dev', 'env_other', 'env_prod']);
});

describe('a change and its record', () => {
  test('are one: where it cannot be recorded, nothing is changed', async () => {
    const keys = async () =>
      (await db.query('SELECT 1 FROM secret_keys WHERE env = $1', [dev.env.no])).length;
    const before = await keys();
    await db.query('ALTER TABLE audit RENAME TO audit_away');
    try {
      await assert.rejects(commands['keys.create'](dev, {}));
      await assert.rejects(
        commands['environments.update'](ctx, { environmentId: 'env_dev', name: 'Renamed' }),
      );
    } finally {
      await db.query('ALTER TABLE audit_away RENAME TO audit');
    }
    assert.equal(await keys(), before);
    assert.notEqual((await findEnvironment(db, 'env_dev'))!.name, 'Renamed');
  });

  test('what changes nothing is not recorded', async () => {
    const { id } = (await commands['keys.create'](dev, { name: 'old' })) as { id: string };
    await commands['keys.revoke'](dev, { keyId: id });
    const entries = await added(async () => {
      await commands['keys.revoke'](dev, { keyId: id });
      await commands['environments.update'](ctx, { environmentId: 'env_dev', status: 'active' });
    });
    assert.deepEqual(entries, []);
  });

  test('a refused one leaves no trace', async () => {
    const entries = await added(async () => {
      const change = commands['environments.update'];
      for (const [refused, code] of [
        [() => change(ctx, { environmentId: 'env_none', name: 'x' }), 'not_found'],
        [() => change(ctx, { environmentId: 'env_dev', settings: {} }), 'invalid_request'],
        [() => commands['keys.revoke'](dev, { keyId: 'none' }), 'not_found'],
        [() => commands['push.removeCredentials'](dev, { provider: 'apns' }), 'not_found'],
        [
          () => commands['push.setCredentials'](dev, { provider: 'apns', credentials: {} }),
          'invalid_request',
        ],
      ] as const)
        await assert.rejects(refused, { code });
    });
    assert.deepEqual(entries, []);
  });
});

test('a token for a user is recorded; when the user is erased, the record says so', async () => {
  const [entry] = await added(() => commands['tokens.create'](dev, { userId: 'minted' }));
  assert.deepEqual(brief(entry!), ['tokens.create', 'minted', 'env_dev']);
  assert.equal(JSON.stringify(entry).includes('eyJ'), false, 'not the token');
  await serverApi(service.url)('DELETE', '/v1/users/minted');
  const [after] = await list({ action: 'tokens.create' });
  assert.match(after!.target!, /^deleted:/);
  assert.equal(JSON.stringify(await list()).includes('minted'), false);
});

test('what a server does with its own key is not recorded', async () => {
  const entries = await added(() => serverApi(service.url)('POST', '/v1/tokens', { userId: 'own' }));
  assert.deepEqual(entries, []);
});

test('the list is paged, newest first, and filtered', async () => {
  for (let i = 0; i < 5; i++) await commands['keys.create'](dev, { name: `k${i}` });
  const all = await list({ environmentId: 'env_dev' });
  const paged: AuditEntry[] = [];
  let cursor: string | undefined;
  do {
    const page = (await commands['audit.list'](ctx, {
      limit: 2,
      environmentId: 'env_dev',
      ...(cursor === undefined ? {} : { cursor }),
    })) as { data: AuditEntry[]; nextCursor: string | null };
    assert.ok(page.data.length <= 2);
    paged.push(...page.data);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  assert.deepEqual(paged, all);
  assert.deepEqual(
    all.slice(0, 5).map((e) => e.changes.after!['name']),
    ['k4', 'k3', 'k2', 'k1', 'k0'],
  );
  assert.ok(all.every((e) => e.environmentId === 'env_dev'));
  assert.deepEqual(await list({ actor: 'nobody' }), []);
  await assert.rejects(list({ cursor: 'nonsense' }), { code: 'invalid_request' });
  await assert.rejects(list({ environmentId: 'env_none' }), { code: 'not_found' });
});

test('only the operator may manage everything: anybody else finds nothing', async () => {
  const stranger: ControlContext = {
    ...ctx,
    caller: dashboardCaller({
      account: { no: 999, id: 'acc_ann', email: 'ann@example.com' },
      session: { id: 'sess_1', signedInAt: new Date().toISOString() },
    }),
  };
  const found = { code: 'not_found' };
  await assert.rejects(
    commands['environments.update'](stranger, { environmentId: 'env_dev', name: 'x' }),
    found,
  );
  const { id: organizationId } = (await db.query<{ id: string }>('SELECT id FROM organizations'))[0]!;
  await assert.rejects(
    commands['environments.create'](stranger, { organizationId, name: 'x', kind: 'production' }),
    found,
  );
  const nothing = { data: [], nextCursor: null };
  assert.deepEqual(await commands['environments.list'](stranger, {}), nothing);
  assert.deepEqual(await commands['audit.list'](stranger, {}), nothing);
  await assert.rejects(commands['audit.list'](stranger, { environmentId: 'env_dev' }), found);
});

test('entries are kept for a year', async () => {
  await commands['keys.create'](dev, {});
  await commands['keys.create'](dev, {});
  const [kept, old] = await list();
  const age = (id: string, days: number) =>
    db.query(`UPDATE audit SET created_at = now() - $2 * interval '1 day' WHERE id = $1`, [id, days]);
  await age(kept!.id, 364);
  await age(old!.id, 366);
  await removeExpired(db, 7 * 86_400_000);
  const ids = (await list()).map((e) => e.id);
  assert.deepEqual([ids.includes(kept!.id), ids.includes(old!.id)], [true, false]);
});
