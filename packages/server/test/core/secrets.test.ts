import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { createVault, loadMasterKey, parseMasterKey, sameString } from '../../src/platform/secrets.ts';
import { startService } from '../support/service.ts';
import { times } from './tools.ts';

const scratch = await mkdtemp(join(tmpdir(), 'parley-secrets-'));
after(() => rm(scratch, { recursive: true, force: true }));

describe('the vault', () => {
  const vault = createVault(Buffer.alloc(32, 1));

  test('opens what it sealed, and seals the same thing differently each time', () => {
    const sealed = vault.seal('secret', 'place');
    assert.equal(vault.open(sealed, 'place').toString(), 'secret');
    assert.equal(sealed.includes('secret'), false);
    assert.notDeepEqual(vault.seal('secret', 'place'), sealed);
    assert.equal(vault.open(vault.seal('', 'place'), 'place').length, 0);
  });

  test('refuses another place, another key, and every changed or missing byte', () => {
    const sealed = vault.seal('secret', 'place');
    assert.throws(() => vault.open(sealed, 'elsewhere'));
    assert.throws(() => createVault(Buffer.alloc(32, 2)).open(sealed, 'place'));
    for (const i of sealed.keys()) {
      const changed = Buffer.from(sealed);
      changed[i]! ^= 1;
      assert.throws(() => vault.open(changed, 'place'), `byte ${i}`);
      assert.throws(() => vault.open(sealed.subarray(0, i), 'place'), `cut at ${i}`);
    }
  });

  test('its hash depends on the value and on the key', () => {
    assert.deepEqual(vault.mac('a'), vault.mac('a'));
    assert.notDeepEqual(vault.mac('a'), vault.mac('b'));
    assert.notDeepEqual(vault.mac('a'), createVault(Buffer.alloc(32, 2)).mac('a'));
  });
});

describe('the master key', () => {
  test('is 32 bytes in base64', () => {
    const key = randomBytes(32);
    assert.deepEqual(parseMasterKey(` ${key.toString('base64')}\n`), key);
    for (const bad of ['', 'short', randomBytes(31).toString('base64'), randomBytes(33).toString('base64')])
      assert.throws(() => parseMasterKey(bad), /32 bytes in base64/);
  });

  test('is made once in the data directory, for its owner alone, under concurrent starts', async () => {
    const dataDir = join(scratch, 'new', 'data');
    const keys = await Promise.all(times(8, () => loadMasterKey(undefined, dataDir, true)));
    for (const key of keys) assert.deepEqual(key, keys[0]);
    const path = join(dataDir, 'master.key');
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    assert.equal((await stat(dataDir)).mode & 0o777, 0o700);
    assert.deepEqual(parseMasterKey(await readFile(path, 'utf8')), keys[0]);
  });

  test('given in the settings wins and leaves no file; a broken file is refused', async () => {
    const given = randomBytes(32);
    const dataDir = join(scratch, 'given');
    assert.deepEqual(await loadMasterKey(given.toString('base64'), dataDir, true), given);
    await assert.rejects(stat(dataDir), { code: 'ENOENT' });
    await writeFile(join(scratch, 'master.key'), 'nonsense');
    await assert.rejects(loadMasterKey(undefined, scratch, true), /32 bytes in base64/);
  });

  test('another one on an existing store is refused with a clear message, and changes nothing', async () => {
    const service = await startService();
    try {
      assert.equal((await stat(join(service.dataDir, 'master.key'))).mode & 0o777, 0o600);
      assert.equal(await service.stop(), 0);
      const wrong = { ...service.env, CHAT_MASTER_KEY: randomBytes(32).toString('base64') };
      await assert.rejects(
        startService({ env: wrong, dataDir: service.dataDir }),
        /ended with 1[^]*sealed with another master key[^]*CHAT_MASTER_KEY/,
      );
      const path = join(service.dataDir, 'master.key');
      const key = await readFile(path, 'utf8');
      await writeFile(path, '');
      const backup = /ended with 1[^]*master\.key is missing or empty[^]*backup/;
      await assert.rejects(startService({ dataDir: service.dataDir }), backup);
      assert.equal(await readFile(path, 'utf8'), '', 'nothing is written over what may be mended');
      await rm(path);
      await assert.rejects(startService({ dataDir: service.dataDir }), backup);
      await assert.rejects(stat(path), { code: 'ENOENT' });
      await writeFile(path, key);
      const again = await service.restart();
      await again.stop();
    } finally {
      await service.dispose();
    }
  });
});

test('sameString compares strings of any length', () => {
  assert.equal(sameString('abc', 'abc'), true);
  for (const other of ['', 'abd', 'abcd', 'ABC']) assert.equal(sameString('abc', other), false);
});
