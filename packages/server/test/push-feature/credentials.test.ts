import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, describe, it } from 'node:test';
import { correctListeners } from '../../src/features/push/sql.ts';
import { dump } from '../core/tools.ts';
import { parley } from '../support/cli.ts';
import { listensForPush } from './tools.ts';
import { setUp, useService } from '../support/use.ts';

/** Credentials by the command line, and whether messages are noted for push at all. */

const { service, scene, db } = useService({ env: { CHAT_ROLES: 'api' } });
let directory: string;
setUp(async () => {
  directory = await mkdtemp(join(tmpdir(), 'parley-push-'));
});
after(async () => {
  await rm(directory, { recursive: true });
});
beforeEach(async () => {
  await db.query('DELETE FROM push_devices');
  await db.query('DELETE FROM push_credentials');
  await correctListeners(db);
});

let files = 0;
async function file(content: string): Promise<string> {
  const path = join(directory, `credentials-${++files}.json`);
  await writeFile(path, content);
  return path;
}
const expo = JSON.stringify({ accessToken: 'expo-Secret-0123456789' });
const set = async (content = expo, provider = 'expo') =>
  parley(service, 'push', 'set', 'env_dev', provider, await file(content));

describe('push: credentials by the command line', () => {
  it('are set, listed, replaced and removed, and never shown', async () => {
    const made = await set();
    assert.deepEqual(made, { provider: 'expo', setAt: made.setAt });
    assert.deepEqual(await parley(service, 'push', 'list', 'env_dev'), [made]);
    const stored = (await db.query<{ no: number }>('SELECT no FROM push_credentials'))[0]!.no;
    await set(JSON.stringify({ accessToken: 'another' }));
    const rows = await db.query<{ no: number }>('SELECT no FROM push_credentials');
    assert.equal(rows.length, 1);
    assert.notEqual(rows[0]!.no, stored, 'a provider made of the old ones is known to be old');
    assert.deepEqual(await parley(service, 'push', 'list', 'env_other'), []);
    assert.deepEqual(await parley(service, 'push', 'remove', 'env_dev', 'expo'), { removed: 'expo' });
    assert.deepEqual(await parley(service, 'push', 'list', 'env_dev'), []);
  });

  it('are sealed in the store', async () => {
    await set();
    const text = await dump(db);
    for (const form of ['utf8', 'hex', 'base64'] as const)
      assert.ok(!text.includes(Buffer.from('expo-Secret-0123456789').toString(form)), form);
  });

  it('that do not fit are refused by field, without a word of what is in them', async () => {
    const cases = [
      ['{"accessToken":"Se cret"}', 'expo', /accessToken/],
      ['Secret', 'expo', /not JSON/],
      ['{"type":"service_account","project_id":"Secret"}', 'fcm', /project_id/],
      ['{}', 'pigeon', /one of fcm, apns, expo, webpush/],
    ] as const;
    await Promise.all([
      ...cases.map(([content, provider, says]) =>
        assert.rejects(set(content, provider), (error: Error & { code: number; stderr: string }) => {
          assert.equal(error.code, 2);
          assert.match(error.stderr, says);
          assert.doesNotMatch(error.stderr, /Se ?cret/);
          return true;
        }),
      ),
      ...[
        ['push', 'set', 'env_dev', 'expo', join(directory, 'none')],
        ['push', 'remove', 'env_dev', 'expo'],
        ['push', 'list', 'env_none'],
      ].map((line) => assert.rejects(parley(service, ...line), { code: 2 })),
    ]);
    assert.deepEqual(await parley(service, 'push', 'list', 'env_dev'), []);
  });
});

describe('push: messages are noted only where a push is possible', () => {
  const device = async (provider: string) => {
    const user = await scene.actor();
    const token = `token-of-${user.id}`;
    assert.equal((await user.api('POST', '/v1/push/devices', { provider, token })).status, 201);
    return { user, token };
  };

  it('with a device and credentials of its provider, whichever came first', async () => {
    assert.equal(await listensForPush(db, 'env_dev'), false);
    await device('fcm');
    await set();
    assert.equal(await listensForPush(db, 'env_dev'), false, 'another provider');
    await device('expo');
    assert.equal(await listensForPush(db, 'env_dev'), true);
    await parley(service, 'push', 'remove', 'env_dev', 'expo');
    assert.equal(await listensForPush(db, 'env_dev'), false);
    await set();
    assert.equal(await listensForPush(db, 'env_dev'), true);
    assert.equal(await listensForPush(db, 'env_other'), false);
  });

  it('with pushMode providers', async () => {
    await device('expo');
    await set();
    for (const [mode, on] of [
      ['webhook', false],
      ['off', false],
      ['providers', true],
    ] as const) {
      await parley(service, 'env', 'set', 'env_dev', '--push', mode);
      assert.equal(await listensForPush(db, 'env_dev'), on, mode);
    }
  });

  it('until the last device is gone', async () => {
    const { user, token } = await device('expo');
    await set();
    await user.api('DELETE', `/v1/push/devices/${token}`);
    await correctListeners(db);
    assert.equal(await listensForPush(db, 'env_dev'), false);
  });

  it('and then they are', async () => {
    const { user } = await device('expo');
    const { id } = await scene.group(user, []);
    const noted = async () => (await db.query('SELECT 1 FROM outbox WHERE seq IS NOT NULL')).length;
    await scene.send(user, id);
    assert.equal(await noted(), 0);
    await set();
    await scene.send(user, id);
    assert.equal(await noted(), 1);
  });
});
