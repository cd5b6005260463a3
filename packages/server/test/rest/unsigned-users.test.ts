import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { it } from 'node:test';
import { ApiError, rateLimits } from '@parley/protocol';
import { createAuthenticator } from '../../src/features/tenancy/authenticate.ts';
import { memoryRateLimiter } from '../../src/platform/rate-limit/memory.ts';
import { createVault } from '../../src/platform/secrets.ts';
import { environments } from '../support/service.ts';
import { devToken } from '../support/tokens.ts';
import { useService } from '../support/use.ts';

const { db } = useService();

/** The authenticator on the service's store, at a time that the test sets; development tokens need no key. */
function scene() {
  const clock = { at: Date.now(), now: () => clock.at, monotonic: () => clock.at };
  const { authenticate } = createAuthenticator({
    db,
    clock,
    vault: createVault(Buffer.alloc(32, 1)),
    limiter: memoryRateLimiter(clock),
  });
  const id = () => `dev-${randomUUID()}`;
  const come = (userId: string, from = '1') =>
    authenticate(devToken({ sub: userId, exp: clock.at / 1000 + 100_000 }), [environments.dev.id], {
      address: from,
      isLocal: () => false,
    });
  return { clock, id, come };
}

const full = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 'rate_limited' && error.retryAfterMs! > 0;

it('users that come with development tokens are bounded by address; those who are there come and go', async () => {
  const { clock, id, come } = scene();
  const known = id();
  await come(known);
  for (let i = 1; i < rateLimits.unsignedUsersAddress.perMinute; i++) await come(id());
  const late = id();
  await assert.rejects(come(late), full);
  assert.deepEqual(await db.query('SELECT 1 FROM users WHERE id = $1', [late]), []);
  for (let i = 0; i < 5; i++) assert.equal((await come(known)).caller.kind, 'client');
  await come(id(), 'elsewhere');
  clock.at += 120_000;
  await come(late);
});

it('and by environment, however many addresses they come from', async () => {
  const { clock, id, come } = scene();
  const { max, windowMs } = rateLimits.unsignedUsersEnvironment;
  for (let i = 0; i < max; i += 50)
    await Promise.all(Array.from({ length: 50 }, (_, k) => come(id(), String(i + k))));
  await assert.rejects(come(id(), 'new'), full);
  clock.at += 2 * windowMs;
  await come(id(), 'new');
});
