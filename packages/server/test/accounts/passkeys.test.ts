import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ApiError } from '@parley/protocol';
import type { Account } from '../../src/features/accounts/sql/accounts.ts';
import * as passkeys from '../../src/features/accounts/passkeys.ts';
import { createAuthenticator } from './authenticator.ts';
import type { Changes } from './authenticator.ts';
import { createWorld } from './world.ts';
import type { World } from './world.ts';
import { until } from '../push-feature/tools.ts';
import { listPasskeys, removePasskey } from '../../src/features/accounts/sql/passkeys.ts';

const party = { id: 'chat.example.com', origin: 'https://chat.example.com' };

let world: World;
before(async () => {
  world = await createWorld();
});
after(() => world.close());

const codeOf = (error: unknown): string => (error instanceof ApiError ? error.code : String(error));
type Options = { challenge: string; rp: { id: string }; user: { id: string }; rpId: string };

const registration = async (account: Account) =>
  (await passkeys.registrationOptions(world.db, world.services, account, party)) as Options;
const add = (account: Account, response: object) =>
  world.db
    .tx((tx) => passkeys.addPasskey(tx, world.services, account, party, { name: 'key', response }))
    .then(() => 'added', codeOf);
const challenge = async () => (await passkeys.signInOptions(world.services, party)) as Options;
const use = (response: object) =>
  world.db.tx((tx) => passkeys.usePasskey(tx, world.services, party, response)).catch(codeOf);

async function registered() {
  const account = await world.account();
  const key = createAuthenticator(party.origin);
  assert.equal(await add(account, key.create(await registration(account))), 'added');
  return { account, key };
}

test('a passkey is added and signs in, several times', async () => {
  const { account, key } = await registered();
  for (let i = 0; i < 2; i++) assert.equal(await use(key.get(await challenge())), account.no);
  const [listed] = await listPasskeys(world.db, account.no);
  assert.equal(listed!.name, 'key');
  assert.ok(listed!.lastUsedAt);
  const options = (await registration(account)) as Options & {
    excludeCredentials: object[];
    attestation: string;
  };
  assert.equal(options.attestation, 'none');
  assert.deepEqual(options.excludeCredentials, [
    { id: key.id, type: 'public-key', transports: ['internal'] },
  ]);
});

test('an answer counts once, and only while its challenge lasts', async () => {
  const { account, key } = await registered();
  const answer = key.get(await challenge());
  assert.equal(await use(answer), account.no);
  assert.equal(await use(answer), 'invalid_credentials');
  const late = key.get(await challenge());
  world.time.at += 5 * 60_000;
  assert.equal(await use(late), 'invalid_credentials');
  const other = await world.account();
  const options = await registration(other);
  const mine = createAuthenticator(party.origin);
  world.time.at += 5 * 60_000;
  assert.equal(await add(other, mine.create(options)), 'invalid_request');
});

test('two answers with one challenge at the same time: one counts', async () => {
  const { account, key } = await registered();
  const options = await challenge();
  const outcomes = await Promise.all([use(key.get(options)), use(key.get(options))]);
  assert.deepEqual(new Set(outcomes), new Set([account.no, 'invalid_credentials']));
});

const wrong: Record<string, Changes> = {
  'of another origin': { origin: 'https://evil.example.com' },
  'of another site': { rpId: 'evil.example.com' },
  'without the person verified': { flags: 1 | 64 },
  'without anybody present': { flags: 64 },
  'to another challenge': { challenge: Buffer.alloc(40).toString('base64url') },
  'of another kind': { type: 'payment.get' },
};
for (const [name, changes] of Object.entries(wrong))
  test(`refused: an answer ${name}`, async () => {
    const { key } = await registered();
    assert.equal(await use(key.get(await challenge(), changes)), 'invalid_credentials');
    const account = await world.account();
    const another = createAuthenticator(party.origin);
    assert.equal(await add(account, another.create(await registration(account), changes)), 'invalid_request');
  });

test('refused: a counter that goes back, as a copied key has it', async () => {
  const { account, key } = await registered();
  assert.equal(await use(key.get(await challenge(), { counter: 7 })), account.no);
  assert.equal(await use(key.get(await challenge(), { counter: 7 })), 'invalid_credentials');
});

test('refused: the challenge of one purpose for another, or of another account', async () => {
  const { key } = await registered();
  const [a, b] = [await world.account(), await world.account()];
  const options = await registration(a);
  assert.equal(await add(b, createAuthenticator(party.origin).create(options)), 'invalid_request');
  assert.equal(await use(key.get({ ...options, rpId: party.id })), 'invalid_credentials');
  const forSignIn = { ...options, ...(await challenge()) };
  assert.equal(await add(a, createAuthenticator(party.origin).create(forSignIn)), 'invalid_request');
});

test('refused: a signature of another key, an unknown key, and what is no answer at all', async () => {
  const { key } = await registered();
  const stranger = createAuthenticator(party.origin);
  assert.equal(await use(stranger.get(await challenge())), 'invalid_credentials');
  assert.equal(
    await use({ ...stranger.get(await challenge()), id: key.id, rawId: key.id }),
    'invalid_credentials',
  );
  for (const nonsense of [
    {},
    { id: 5 },
    { id: key.id },
    { id: key.id, response: {} },
    { id: key.id, response: 'x' },
  ])
    assert.equal(await use(nonsense), 'invalid_credentials');
  const account = await world.account();
  for (const nonsense of [{}, { response: {} }, { response: { attestationObject: 'AAAA' } }])
    assert.equal(await add(account, nonsense), 'invalid_request');
});

test('refused: an attestation with certificates, which could make us fetch what they name', async () => {
  const account = await world.account();
  const key = createAuthenticator(party.origin);
  const statement = {
    fmt: 'packed',
    attStmt: new Map<string, never>([
      ['alg', -7 as never],
      ['sig', Buffer.alloc(70) as never],
      ['x5c', [Buffer.alloc(10)] as never],
    ]),
  };
  assert.equal(await add(account, key.create(await registration(account), { statement })), 'invalid_request');
  for (const fmt of ['fido-u2f', 'android-key', 'android-safetynet', 'tpm', 'apple'])
    assert.equal(
      await add(account, key.create(await registration(account), { statement: { fmt, attStmt: new Map() } })),
      'invalid_request',
    );
});

test('one key is of one account, and an account has at most 20', async () => {
  const { account, key } = await registered();
  const other = await world.account();
  assert.equal(await add(other, key.create(await registration(other))), 'invalid_request');
  for (let i = 1; i < 20; i++)
    assert.equal(
      await add(account, createAuthenticator(party.origin).create(await registration(account))),
      'added',
    );
  await assert.rejects(registration(account), { code: 'invalid_request' });
});

test('a removed one signs nobody in; nobody removes another’s', async () => {
  const { account, key } = await registered();
  const [{ id } = { id: '' }] = await listPasskeys(world.db, account.no);
  assert.equal(await removePasskey(world.db, (await world.account()).no, id), false);
  assert.equal(await use(key.get(await challenge())), account.no);
  assert.equal(await removePasskey(world.db, account.no, id), true);
  assert.equal(await use(key.get(await challenge())), 'invalid_credentials');
});

test('a passkey that is removed while it is being used signs nobody in', async () => {
  const { account, key } = await registered();
  const answer = key.get(await challenge());
  let used: ReturnType<typeof use>;
  await world.db.tx(async (tx) => {
    await tx.query('DELETE FROM passkeys WHERE account = $1', [account.no]);
    used = use(answer);
    const waits = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE passkeys%'`;
    await until(async () => (await world.db.query(waits)).length > 0, 'the passkey is waited for');
  });
  assert.equal(await used!, 'invalid_credentials');
});

test('the user handle must be that of the account that the passkey belongs to (WebAuthn 7.2, step 6)', async () => {
  const { account, key } = await registered();
  const other = await world.account();
  const answer = async (userHandle: string | undefined) => {
    const given = key.get(await challenge());
    return use({ ...given, response: { ...given.response, userHandle } });
  };
  const encoded = (text: string) => Buffer.from(text).toString('base64url');
  for (const wrong of [encoded(other.id), encoded('acc_unknown'), '', undefined])
    assert.equal(await answer(wrong), 'invalid_credentials', wrong);
  assert.equal(await answer(encoded(account.id)), account.no);
});
