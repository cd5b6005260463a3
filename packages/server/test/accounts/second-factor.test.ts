import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import {
  hashToken,
  makeRecoveryCodes,
  makeToken,
  recoveryCodeHash,
  tokenForm,
} from '../../src/features/accounts/tokens.ts';
import { base32, codeAt, matchingStep, otpauthUri } from '../../src/features/accounts/totp.ts';

const secret = Buffer.from('12345678901234567890');

test('RFC 6238, appendix B: the codes of the test vectors', () => {
  const vectors: [number, string][] = [
    ...([
      [59, '287082'],
      [1_111_111_109, '081804'],
      [1_111_111_111, '050471'],
    ] as [number, string][]),
    ...([
      [1_234_567_890, '005924'],
      [2_000_000_000, '279037'],
      [20_000_000_000, '353130'],
    ] as [number, string][]),
  ];
  for (const [seconds, code] of vectors) {
    assert.equal(codeAt(secret, Math.floor(seconds / 30)), code);
    assert.equal(matchingStep(secret, code, seconds * 1000, null), Math.floor(seconds / 30));
  }
});

test('a code counts one step before and after its own, and not beyond', () => {
  const step = 1_000;
  const at = (n: number) => matchingStep(secret, codeAt(secret, step), (step + n) * 30_000, null);
  assert.deepEqual([-2, -1, 0, 1, 2].map(at), [null, step, step, step, null]);
});

test('a used step, and any before it, never counts again', () => {
  const now = 1_000 * 30_000;
  for (const [used, expected] of [
    [null, 1_000],
    [998, 1_000],
    [999, 1_000],
    [1_000, null],
    [1_001, null],
  ] as const)
    assert.equal(matchingStep(secret, codeAt(secret, 1_000), now, used), expected);
  assert.equal(matchingStep(secret, codeAt(secret, 999), now, 999), null);
  assert.equal(matchingStep(secret, codeAt(secret, 1_001), now, 1_000), 1_001, 'a clock ahead may go on');
});

test('what is no code is none', () => {
  for (const code of ['', '12345', '1234567', '28708２', ' 287082', 'abcdef'])
    assert.equal(matchingStep(secret, code, 59_000, null), null);
});

test('RFC 4648, section 10: base32, without padding', () => {
  const vectors = {
    '': '',
    f: 'MY',
    fo: 'MZXQ',
    foo: 'MZXW6',
    foob: 'MZXW6YQ',
    fooba: 'MZXW6YTB',
    foobar: 'MZXW6YTBOI',
  };
  for (const [text, expected] of Object.entries(vectors)) assert.equal(base32(Buffer.from(text)), expected);
  assert.equal(
    otpauthUri(secret, 'a+b@example.com'),
    'otpauth://totp/Parley:a%2Bb%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Parley',
  );
});

test('recovery codes: ten different ones of 120 bits, read however they are typed', () => {
  const codes = makeRecoveryCodes(randomBytes);
  assert.equal(new Set(codes).size, 10);
  for (const code of codes) {
    assert.match(code, /^([a-z2-7]{4}-){5}[a-z2-7]{4}$/);
    const hash = recoveryCodeHash(code)!;
    assert.deepEqual(recoveryCodeHash(` ${code.toUpperCase().replaceAll('-', ' ')} `), hash);
    assert.deepEqual(recoveryCodeHash(code.replaceAll('-', '')), hash);
  }
  for (const none of ['', '123456', codes[0]!.slice(1), `${codes[0]}a`, codes[0]!.replace(/^./, '1')])
    assert.equal(recoveryCodeHash(none), null);
});

test('tokens have 256 bits', () => {
  const token = makeToken(randomBytes);
  assert.match(token, tokenForm);
  assert.notEqual(token, makeToken(randomBytes));
  assert.equal(hashToken(token).length, 32);
});
