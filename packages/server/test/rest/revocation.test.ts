import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { revokedSessions } from '../../src/features/presence/sql.ts';
import { assertError, createApi } from '../support/api.ts';
import { nowSeconds, signToken } from '../support/tokens.ts';
import { useService } from '../support/use.ts';

const { service, server, db } = useService();

const id = () => `u-${randomUUID()}`;
const as = (token: string) => createApi(service.url, token)('GET', '/v1/conversations');
const works = async (token: string) => assert.equal((await as(token)).status, 200);
const refused = async (token: string) => assertError(await as(token), 401, 'token_invalid');
const mint = async (userId: string): Promise<string> =>
  (await server('POST', '/v1/tokens', { userId })).body.token;
const act = async (userId: string, what: string) =>
  assert.equal((await server('POST', `/v1/users/${userId}/${what}`)).status, 200);
const iatOf = (token: string): number =>
  JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()).iat;

describe('identity#revocation: the cut-off is always later than the one before', () => {
  it('revoke, mint, revoke: the token between is refused, however fast', async () => {
    const user = id();
    const tokens: string[] = [await mint(user)];
    for (let i = 0; i < 5; i++) {
      await works(tokens.at(-1)!);
      await act(user, 'revoke-tokens');
      for (const token of tokens) await refused(token);
      tokens.push(await mint(user));
    }
    await works(tokens.at(-1)!);
    const iats = tokens.map(iatOf);
    for (let i = 1; i < iats.length; i++) assert.ok(iats[i]! > iats[i - 1]!, String(iats));
  });

  it('revocations at the same time are as many cut-offs', async () => {
    const user = id();
    await mint(user);
    const cutoff = async () =>
      Date.parse(
        (await db.query<{ at: string }>('SELECT tokens_from AS at FROM users WHERE id = $1', [user]))[0]!.at,
      );
    await act(user, 'revoke-tokens');
    const before = await cutoff();
    await Promise.all(Array.from({ length: 10 }, () => act(user, 'revoke-tokens')));
    assert.ok((await cutoff()) >= before + 10_000);
    await works(await mint(user));
  });

  it('deactivate, reactivate, mint, erase: the token does not bring the user back', async () => {
    const user = id();
    await mint(user);
    await act(user, 'deactivate');
    await act(user, 'reactivate');
    const token = await mint(user);
    await works(token);
    assert.equal((await server('DELETE', `/v1/users/${user}`)).status, 204);
    await refused(token);
    assertError(await server('GET', `/v1/users/${user}`), 404, 'not_found');
    const next = await mint(user);
    await works(next);
    assert.equal((await server('DELETE', `/v1/users/${user}`)).status, 204);
    await refused(next);
  });

  it('a session goes by the iat of its token: one from a moment ago stays, one from before is found', async () => {
    const user = id();
    const old = iatOf(await mint(user));
    for (let i = 0; i < 5; i++) await act(user, 'revoke-tokens');
    const fresh = iatOf(await mint(user));
    const [row] = await db.query<{ env: number; no: number }>('SELECT env, no FROM users WHERE id = $1', [
      user,
    ]);
    const found = await revokedSessions(
      db,
      [old, fresh].map((issuedAt) => ({ env: row!.env, user: row!.no, keyId: null, issuedAt })),
    );
    assert.deepEqual(
      found.map((f) => f.ord),
      [1],
    );
  });
});

describe('identity#revocation-ahead: tokens that are dated ahead', () => {
  it('are refused after a revocation, whether they were seen before or not; minted ones work', async () => {
    for (const ahead of [3, 30, 55]) {
      const user = id();
      await mint(user);
      const dated = (by: number) => signToken({ sub: user, iat: nowSeconds() + by });
      const seen = dated(ahead);
      await works(seen);
      await act(user, 'revoke-tokens');
      await refused(seen);
      // Dated only now, since on a slow machine the time of an earlier one may have come.
      await refused(dated(ahead + 2));
      await works(await mint(user));
    }
  });

  it('stay refused when their time has come: the cut-off goes by the clock of those who sign', async () => {
    const user = id();
    await mint(user);
    await db.query(`UPDATE secret_keys SET ahead = 0, ahead_at = NULL`);
    const token = signToken({ sub: user, iat: nowSeconds() + 50 });
    await works(token);
    await act(user, 'revoke-tokens');
    const [row] = await db.query<{ later: boolean }>(
      'SELECT tokens_from > to_timestamp($2) AS later FROM users WHERE id = $1',
      [user, iatOf(token)],
    );
    assert.equal(row!.later, true);
    // Three seconds later, by the same clock.
    await db.query(`UPDATE users SET tokens_from = tokens_from - interval '3 seconds' WHERE id = $1`, [user]);
    await works(signToken({ sub: user, iat: nowSeconds() + 50 }));
  });

  it('are accepted again as soon as they cannot be from before the revocation', async () => {
    const user = id();
    await mint(user);
    await db.query(`UPDATE secret_keys SET ahead = 0, ahead_at = NULL`);
    await act(user, 'revoke-tokens');
    const token = signToken({ sub: user, iat: nowSeconds() + 40 });
    await refused(token);
    await db.query(`UPDATE users SET tokens_from = tokens_from - interval '61 seconds' WHERE id = $1`, [
      user,
    ]);
    await works(token);
  });

  it('minting in turns with revoking does not push the clock of the key ahead', async () => {
    const user = id();
    await db.query(`UPDATE secret_keys SET ahead = 0, ahead_at = NULL`);
    for (let i = 0; i < 10; i++) {
      await works(await mint(user));
      await act(user, 'revoke-tokens');
    }
    assert.deepEqual(await db.query('SELECT 1 FROM secret_keys WHERE ahead > 0'), []);
  });
});
