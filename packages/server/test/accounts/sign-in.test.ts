import assert from 'node:assert/strict';
import { randomBytes, scryptSync } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { ApiError } from '@parley/protocol';
import { findByEmail, getAccount, setPassword } from '../../src/features/accounts/sql/accounts.ts';
import type { Account } from '../../src/features/accounts/sql/accounts.ts';
import { createPasswords } from '../../src/features/accounts/passwords.ts';
import * as factors from '../../src/features/accounts/second-factor.ts';
import { confirmPassword, signIn } from '../../src/features/accounts/sign-in.ts';
import { totpApp } from './totp-app.ts';
import { createWorld, goodPassword, origin } from './world.ts';
import type { World } from './world.ts';
import { countRecoveryCodes, removeTotp } from '../../src/features/accounts/sql/second-factor.ts';

let world: World;
before(async () => {
  world = await createWorld();
});
after(() => world.close());

let addresses = 0;
/** An address of its own for each try, unless one is given: then only the account's tries count. */
const attempt = async (
  given: { email: string; password?: string; code?: string },
  address = `198.51.100.${++addresses}`,
): Promise<string> => {
  const filled = { password: goodPassword, ...given };
  try {
    const where = { ...origin, address };
    return await signIn(world.db, world.services, filled, where, (_tx, account) =>
      Promise.resolve(account.email),
    );
  } catch (error) {
    return (error as ApiError).code ?? String(error);
  }
};

/** Turns one-time codes on; returns what makes them. */
async function withCodes(account: Account): Promise<{ code(step?: number): string; recovery: string[] }> {
  const { uri } = await factors.beginTotp(world.db, world.services, account);
  const app = totpApp(uri);
  const code = (step = 0) => app(world.time.at + step * 30_000);
  await factors.confirmTotp(world.db, world.services, await getAccount(world.db, account.no), code());
  const recovery = await factors.renewRecoveryCodes(world.db, world.services, account.no);
  world.time.at += 60_000;
  return { code, recovery };
}

test('the right password signs in, in any spelling of the address; a wrong one and an unknown address answer alike', async () => {
  const { email } = await world.account();
  assert.equal(await attempt({ email: ` ${email.toUpperCase()} ` }), email);
  assert.equal(await attempt({ email, password: 'drei Kühe im regen' }), 'invalid_credentials');
  assert.equal(await attempt({ email: 'nobody@example.com' }), 'invalid_credentials');
});

test('an unknown address takes the same work: a hash with the same parameters', async () => {
  const { email } = await world.account();
  const seen: (string | null)[] = [];
  const { passwords } = world.services;
  world.services.passwords = {
    ...passwords,
    verify: (password, stored) => {
      seen.push(stored);
      return passwords.verify(password, stored);
    },
  };
  await attempt({ email, password: 'wrong password' });
  await attempt({ email: 'nobody2@example.com', password: 'wrong password' });
  world.services.passwords = passwords;
  assert.equal(seen.length, 2);
  assert.equal(seen[1], null);
});

test('an outdated hash is replaced at the first sign-in, and not by a wrong password', async (t) => {
  const cheap = world.services.passwords;
  world.services.passwords = createPasswords(randomBytes);
  t.after(() => (world.services.passwords = cheap));
  const { no, email } = await world.account();
  const salt = randomBytes(16);
  const key = scryptSync(goodPassword.normalize('NFKC'), salt, 32, { N: 16_384, r: 8, p: 1 });
  const old = `scrypt$${salt.toString('base64')}$${key.toString('base64')}`;
  await setPassword(world.db, no, old);
  assert.equal(await attempt({ email, password: 'wrong password' }), 'invalid_credentials');
  assert.equal((await findByEmail(world.db, email))!.passwordHash, old);
  assert.equal(await attempt({ email }), email);
  assert.match((await findByEmail(world.db, email))!.passwordHash, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  assert.equal(await attempt({ email }), email);
});

test('10 wrong tries per account in 15 minutes; then even the right password waits', async () => {
  const { email } = await world.account();
  const wrong = await Promise.all(
    Array.from({ length: 30 }, () => attempt({ email, password: 'wrong password' })),
  );
  assert.equal(
    wrong.filter((code) => code === 'invalid_credentials').length,
    10,
    'also when all come at once',
  );
  assert.equal(await attempt({ email }), 'rate_limited');
  const other = await world.account();
  assert.equal(await attempt({ email: other.email }), other.email);
  world.time.at += 30 * 60_000;
  assert.equal(await attempt({ email }), email);
});

test('an unknown address is refused after as many tries', async () => {
  const email = 'nobody3@example.com';
  for (let i = 0; i < 10; i++) assert.equal(await attempt({ email }), 'invalid_credentials');
  assert.equal(await attempt({ email }), 'rate_limited');
});

test('dashboard#guessing: the tries of an IPv6 network (/64) count as those of one address', async () => {
  const wrong = (i: number, network: string) =>
    attempt(
      { email: `nobody-v6-${i}@example.com`, password: 'wrong password' },
      `${network}::${i.toString(16)}`,
    );
  for (let i = 0; i < 100; i++) assert.equal(await wrong(i, '2001:db8:7:8'), 'invalid_credentials');
  assert.equal(await wrong(101, '2001:db8:7:8'), 'rate_limited');
  assert.equal(await wrong(102, '2001:db8:7:9'), 'invalid_credentials');
});

test('100 wrong tries per address; right ones do not count', async () => {
  const address = '203.0.113.7';
  const { email } = await world.account();
  for (let i = 0; i < 20; i++) assert.equal(await attempt({ email }, address), email);
  for (let i = 0; i < 100; i++)
    assert.equal(await attempt({ email: `nobody-${i}@example.com` }, address), 'invalid_credentials');
  assert.equal(await attempt({ email }, address), 'rate_limited');
  assert.equal(await attempt({ email }), email, 'from elsewhere it works');
});

test('with one-time codes: the password alone is not enough, a code counts once, a recovery code too', async () => {
  const account = await world.account();
  const { email } = account;
  const { code, recovery } = await withCodes(account);
  assert.equal(await attempt({ email }), 'second_factor_required');
  assert.equal(await attempt({ email, password: 'wrong password' }), 'invalid_credentials');
  assert.equal(await attempt({ email, password: 'wrong password', code: code() }), 'invalid_credentials');
  assert.equal(
    await attempt({ email, code: '000000' === code() ? '000001' : '000000' }),
    'invalid_credentials',
  );
  const now = code();
  const both = await Promise.all([attempt({ email, code: now }), attempt({ email, code: now })]);
  assert.deepEqual(both.sort(), ['invalid_credentials', email], 'of two with one code, one gets in');
  world.time.at += 60_000;
  assert.equal(await attempt({ email, code: code() }), email);
  assert.equal(await attempt({ email, code: recovery[0]! }), email);
  assert.equal(await attempt({ email, code: recovery[0]! }), 'invalid_credentials');
  assert.equal(await countRecoveryCodes(world.db, account.no), 9);
});

test('second_factor_required is no wrong try; wrong codes are', async () => {
  const account = await world.account();
  const { email } = account;
  const { code } = await withCodes(account);
  for (let i = 0; i < 15; i++) assert.equal(await attempt({ email }), 'second_factor_required');
  for (let i = 0; i < 10; i++) assert.equal(await attempt({ email, code: 'x' }), 'invalid_credentials');
  assert.equal(await attempt({ email, code: code() }), 'rate_limited');
});

test('codes are set up with one of them, sealed in the store, and go when they are turned off', async () => {
  const account = await world.account();
  await assert.rejects(factors.confirmTotp(world.db, world.services, account, '123456'), {
    code: 'invalid_request',
  });
  await factors.beginTotp(world.db, world.services, account);
  const begun = await getAccount(world.db, account.no);
  assert.equal(
    await attempt({ email: account.email }),
    account.email,
    'not asked for before it was confirmed',
  );
  await assert.rejects(factors.confirmTotp(world.db, world.services, begun, 'abcdef'), {
    code: 'invalid_request',
  });
  assert.ok(begun.totpSecret!.length > 20);
  await withCodes(account);
  const on = await getAccount(world.db, account.no);
  await assert.rejects(factors.beginTotp(world.db, world.services, on), { code: 'invalid_request' });
  assert.equal(await removeTotp(world.db, account.no), true);
  assert.equal(await removeTotp(world.db, account.no), false);
  assert.equal(await attempt({ email: account.email }), account.email);
});

test('giving the password again is counted by session, so strangers cannot use the tries up', async () => {
  const account = await world.account();
  for (let i = 0; i < 11; i++) await attempt({ email: account.email, password: 'wrong password' });
  const confirm = (session: string, password: string) =>
    confirmPassword(world.db, world.services, account, session, { password }, () =>
      Promise.resolve('yes'),
    ).catch((error: ApiError) => error.code);
  assert.equal(await confirm('a', goodPassword), 'yes');
  for (let i = 0; i < 10; i++) assert.equal(await confirm('a', 'wrong password'), 'invalid_credentials');
  assert.equal(await confirm('a', goodPassword), 'rate_limited');
  assert.equal(await confirm('b', goodPassword), 'yes');
});

test('a password that is changed while it is checked lets nobody in', async () => {
  const account = await world.account();
  const other = await world.services.passwords.hash('another password');
  const { passwords } = world.services;
  world.services.passwords = {
    ...passwords,
    verify: async (password, stored) => {
      const result = await passwords.verify(password, stored);
      await setPassword(world.db, account.no, other);
      return result;
    },
  };
  const outcome = await attempt({ email: account.email });
  world.services.passwords = passwords;
  assert.equal(outcome, 'invalid_credentials');
});
