import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { createVault, macKeyOf } from '../../src/platform/secrets.ts';
import { sealedTables } from '../../src/reseal/columns.ts';

/** The columns of bytes that are not sealed, and what a rotation does to each. */
const unsealed: Readonly<Record<string, string>> = {
  'master_key_check.sealed': 'sealed with the new key at the beginning of a rotation, and again at its end',
  'erased_ids.subject': 'a keyed hash; its key is kept in `master_key_check`, so it stays valid',
  'idempotency.route': 'a keyed hash; its key is kept in `master_key_check`, so it stays valid',
  'idempotency.fingerprint': 'a keyed hash; its key is kept in `master_key_check`, so it stays valid',
  'push_devices.token_hash': 'a hash without a key: nothing',
  'account_sessions.token': 'a hash without a key: nothing',
  'recovery_codes.code': 'a hash without a key: nothing',
  'passkeys.credential': 'public: nothing',
  'passkeys.public_key': 'public: nothing',
  'passkey_challenges.challenge': 'random: nothing',
  'password_resets.token': 'a hash without a key: nothing',
  'invitations.token': 'a hash without a key: nothing',
  'invite_links.token': 'a hash without a key: nothing',
};

const schema = readFileSync(new URL('../../schema.sql', import.meta.url), 'utf8');
const tables = [...schema.matchAll(/^CREATE TABLE (\w+) \(\n([^]*?)^\)/gm)].map(([, name, body]) => ({
  name: name!,
  columns: [...body!.matchAll(/^ {2}([a-z_]+) ([a-z]+)/gm)].map(([, column, type]) => ({
    column: column!,
    type: type!,
  })),
  key: /PRIMARY KEY \(([^)]+)\)/.exec(body!)?.[1]?.split(', '),
}));

test('every column of bytes in the schema is sealed again by a rotation, or is listed with the reason why not', () => {
  const bytes = tables.flatMap(({ name, columns }) =>
    columns.filter(({ type }) => type === 'bytea').map(({ column }) => `${name}.${column}`),
  );
  const listed = sealedTables
    .filter(({ form }) => form !== 'json')
    .flatMap(({ table, columns }) => columns.map((column) => `${table}.${column}`));
  assert.ok(bytes.length > 10, 'the schema is read');
  assert.deepEqual([...listed, ...Object.keys(unsealed)].sort(), bytes.sort());
});

test('tables are walked by their primary keys', () => {
  for (const { table, key, columns } of sealedTables) {
    const found = tables.find(({ name }) => name === table);
    assert.deepEqual(Object.keys(key), found?.key, table);
    const known = found!.columns.map(({ column }) => column);
    for (const column of columns) assert.ok(known.includes(column), `${table}.${column}`);
  }
});

test('during a rotation a vault opens and proves with each key, and seals with the current one', () => {
  const [older, newer] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
  const before = createVault(older);
  const during = createVault(() => ({ current: newer, others: [older], mac: macKeyOf(older) }));
  const after = createVault(() => ({ current: newer, others: [], mac: macKeyOf(older) }));
  const sealed = before.seal('secret', 'place');
  assert.equal(during.open(sealed, 'place').toString(), 'secret');
  assert.throws(() => after.open(sealed, 'place'));
  const again = during.reseal(sealed, 'place')!;
  assert.equal(after.open(again, 'place').toString(), 'secret');
  assert.equal(during.reseal(again, 'place'), null);
  assert.throws(() => during.reseal(again, 'another place'));
  assert.deepEqual(during.signatures('url'), [...after.signatures('url'), ...before.signatures('url')]);
  assert.deepEqual(after.mac('id'), before.mac('id'), 'what is looked up by it is still found');
  assert.notDeepEqual(after.signatures('url'), before.signatures('url'), 'an older key proves nothing later');
});
