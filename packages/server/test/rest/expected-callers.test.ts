import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { it } from 'node:test';
import { createAuthenticator } from '../../src/features/tenancy/authenticate.ts';
import { insertKey, revokeKey } from '../../src/features/tenancy/keys.ts';
import { createIds, systemClock } from '../../src/platform/clock.ts';
import { memoryRateLimiter } from '../../src/platform/rate-limit/memory.ts';
import { createVault } from '../../src/platform/secrets.ts';
import { environments } from '../support/service.ts';
import { devToken, nowSeconds, signToken } from '../support/tokens.ts';
import { useService } from '../support/use.ts';

const { db } = useService();
const ids = createIds(systemClock, randomBytes);
const vault = createVault(Buffer.alloc(32, 1));
const { dev, prod } = environments;

/** An authenticator on the service's store, and a new key of the environment `dev`. */
async function scene() {
  const [env] = await db.query<{ no: number }>('SELECT no FROM environments WHERE id = $1', [dev.id]);
  const { secretKey, id } = await insertKey(db, { ids, vault }, env!.no, { name: 'its own' });
  const deps = { db, vault, clock: systemClock, limiter: memoryRateLimiter(systemClock) };
  return { ...createAuthenticator(deps), secretKey, revoke: () => revokeKey(db, env!.no, id) };
}

it('SPEC 5: whose a credential is can be guessed once it was accepted, and not after it was refused', async () => {
  const { authenticate, expected, secretKey, revoke } = await scene();
  for (const credential of [secretKey, signToken({ sub: 'ann' }, { secretKey })]) {
    assert.equal(expected(credential, []), undefined);
    const { caller } = await authenticate(credential, [], 'a');
    assert.equal(expected(credential, []), caller);
    assert.equal(expected(credential, [dev.id]), caller);
    assert.equal(expected(credential, [prod.id]), undefined);
    assert.equal(expected(credential, [dev.id, prod.id]), undefined);
    assert.equal(expected(`${credential}x`, []), undefined);
  }
  await revoke();
  await assert.rejects(authenticate(secretKey, [], 'a'), { code: 'key_revoked' });
  assert.equal(expected(secretKey, []), undefined);
  assert.equal(expected(undefined, []), undefined);
});

it('SPEC 5: of a development token it is never guessed, because the same text is valid in every environment', async () => {
  const { authenticate, expected } = await scene();
  const token = devToken({ sub: 'ann', exp: nowSeconds() + 60 });
  await authenticate(token, [dev.id], 'a');
  assert.equal(expected(token, [dev.id]), undefined);
});
