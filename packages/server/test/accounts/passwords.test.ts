import assert from 'node:assert/strict';
import crypto, { randomBytes, scryptSync } from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { describe, test } from 'node:test';
import type { ApiError } from '@parley/protocol';
import { checkNewPassword, isCommonPassword, ownWords } from '../../src/features/accounts/password-rules.ts';
import { createPasswords } from '../../src/features/accounts/passwords.ts';

const passwords = createPasswords(randomBytes);

test('where there is no account, one hash is computed all the same, with the parameters of those that are kept', async (t) => {
  const hash = await passwords.hash('päss wörd');
  const { argon2 } = crypto;
  const computed: object[] = [];
  t.after(() => {
    crypto.argon2 = argon2;
    syncBuiltinESMExports();
  });
  crypto.argon2 = (algorithm, parameters, callback) => {
    const { memory, passes, parallelism, tagLength, nonce } = parameters;
    computed.push({ algorithm, memory, passes, parallelism, tagLength, nonce: (nonce as Buffer).length });
    argon2(algorithm, parameters, callback);
  };
  syncBuiltinESMExports();
  assert.equal((await passwords.verify('wrong', hash)).matches, false);
  assert.equal((await passwords.verify('wrong', null)).matches, false);
  assert.equal(computed.length, 2);
  assert.deepEqual(computed[1], computed[0]);
});

describe('passwords at rest', () => {
  test('argon2id with its parameters, salted, compared whole', async () => {
    const hash = await passwords.hash('päss wörd');
    assert.match(hash, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
    assert.notEqual(hash, await passwords.hash('päss wörd'));
    assert.deepEqual(await passwords.verify('päss wörd', hash), { matches: true, outdated: false });
    const composed = await passwords.verify('pa\u0308ss wo\u0308rd', hash);
    assert.equal(composed.matches, true, 'the same letters, composed otherwise');
    for (const wrong of ['päss wörd ', 'Päss wörd', ''])
      assert.equal((await passwords.verify(wrong, hash)).matches, false);
  });

  test('a hash of another argon2 implementation is understood, with its own parameters', async () => {
    // The test vector of the reference implementation: password, somesalt, t=2, m=65536, p=1.
    const foreign = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc';
    assert.deepEqual(await passwords.verify('password', foreign), { matches: true, outdated: true });
    assert.equal((await passwords.verify('passwore', foreign)).matches, false);
  });

  test('the scrypt hashes of earlier stores match and are outdated', async () => {
    const salt = randomBytes(16);
    const key = scryptSync('correct horse', salt, 32, { N: 16_384, r: 8, p: 1 });
    const stored = `scrypt$${salt.toString('base64')}$${key.toString('base64')}`;
    assert.deepEqual(await passwords.verify('correct horse', stored), { matches: true, outdated: true });
    assert.equal((await passwords.verify('correct horses', stored)).matches, false);
  });

  test('nothing matches where there is no account, or the stored text is broken', async () => {
    const broken = ['', 'scrypt', 'scrypt$$', 'plain$a$b', '$argon2id$v=19$m=19456,t=2,p=1$$'];
    for (const stored of [null, ...broken])
      assert.equal((await passwords.verify('x', stored)).matches, false, String(stored));
  });
});

describe('password rules', () => {
  const common = [
    '1234567890',
    '0123456789',
    '0987654321',
    '12345678910',
    '1111111111',
    '1234554321',
    '123123123123',
    'qwertyuiop',
    'qwertzuiop',
    'azertyuiop',
    'asdfghjkl;',
    '1q2w3e4r5t',
    '1qaz2wsx3edc',
    'q1w2e3r4t5y6',
    'password12',
    'Password123',
    'P@ssw0rd123',
    'passwordpassword',
    'password2024!',
    '1password1',
    'pa55word1234',
    'qwerty12345',
    '12345qwerty',
    'zxcvbnm123',
    'abc123abc123',
    'abcdefghij',
    'abcdefg123',
    'aaaaaaaaaa',
    'Summer2024!!',
    'Welcome2025',
    'letmein123',
    'changeme123',
    'iloveyou12',
    'babygirl12',
    'princess12',
    'basketball',
    'volleyball',
    'california',
    'strawberry',
    'christopher',
    'sweetheart',
    'motdepasse1',
    'Parley1234',
    'administrator',
    'Admin12345',
    'trustno1trustno1',
    '2024-11-15',
    '0176 1234567',
  ];
  for (const password of common)
    test(`refused: ${password}`, () => assert.equal(isCommonPassword(password), true));

  const good = [
    'correct horse',
    'correct horse battery',
    'xkcd-936-staple',
    'k7#mQ2vL9p',
    'drei Kühe im Regen',
    'my password is a long one',
    'tr0ub4dor&3x',
    'qwer-lamp-tuba',
    'ひみつのことばはこれです',
    '8f3a1c9e77',
    'password welcome summer football dragon',
  ];
  for (const password of good)
    test(`taken: ${password}`, () => assert.equal(isCommonPassword(password), false));

  test('an account’s own words are no password', () => {
    const own = ownWords('Ada.Lovelace@Example.com', 'Analytical Engines').map((w) => w.toLowerCase());
    for (const password of ['lovelace1815', 'ada.lovelace@example.com', 'Analytical1', 'lovelace-ada!'])
      assert.equal(isCommonPassword(password, own), true, password);
    assert.equal(isCommonPassword('lovelace writes notes', own), false);
  });

  test('10 to 256 characters, counted as people count them', () => {
    const refused = (password: string) => {
      try {
        checkNewPassword(password, []);
        return null;
      } catch (error) {
        return (error as ApiError).message;
      }
    };
    assert.match(refused('k7#mQ2vL9')!, /at least 10/);
    assert.equal(refused('k7#mQ2vL9p'), null);
    assert.match(refused('🐎🔋📎🐢🦀🐙🪁🧊🌵')!, /at least 10/);
    assert.equal(refused('🐎🔋📎🐢🦀🐙🪁🧊🌵🧲'), null);
    const long = randomBytes(128).toString('hex');
    assert.equal(refused(long), null);
    assert.match(refused(`${long}x`)!, /at most 256/);
    assert.match(refused('a'.repeat(200))!, /guessed first/);
  });

  test('the longest password is checked at once', () => {
    const began = process.cpuUsage().user;
    for (let i = 0; i < 100; i++) isCommonPassword('1q'.repeat(20) + 'x');
    for (let i = 0; i < 100; i++) isCommonPassword(`${'a'.repeat(255)}b`);
    assert.ok(process.cpuUsage().user - began < 5_000_000);
  });
});
