import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, it } from 'node:test';
import Fastify from 'fastify';
import { ApiError, operations, plans } from '@parley/protocol';
import type { HttpContext, TenantCaller } from '../../src/features/context.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { memoryRateLimiter } from '../../src/platform/rate-limit/memory.ts';
import { Idempotency } from '../../src/transport/rest/idempotency.ts';
import type { RestOptions } from '../../src/transport/rest/options.ts';
import { createRoute } from '../../src/transport/rest/route.ts';
import { toApiError } from '../../src/transport/rest/reply.ts';
import { Unsent, unsentBounds } from '../../src/transport/rest/unsent.ts';
import { createTurns } from '../../src/transport/turns.ts';

const callerOf = (plan: 'free' | 'growth') =>
  ({ kind: 'server', env: { no: 1, plan }, keyId: 'k' }) as TenantCaller;

/** One route with a credential that was accepted before, and whose next look-up ends when the test says so. */
function scene(
  name: 'users.list' | 'users.deactivate',
  result: () => Promise<unknown> = () => Promise.resolve({ data: [] }),
) {
  const known = callerOf('free');
  const lookup = Promise.withResolvers<{ caller: TenantCaller }>();
  const ran: TenantCaller[] = [];
  const began = Promise.withResolvers<void>();
  const options = {
    handlers: {
      [name]: (ctx: HttpContext) => {
        ran.push(ctx.caller as TenantCaller);
        began.resolve();
        return result();
      },
    },
    authenticator: { authenticate: () => lookup.promise, expected: () => known },
    limiter: memoryRateLimiter(systemClock),
    services: { plans },
    turns: createTurns(10),
  } as unknown as RestOptions;
  const unsent = new Unsent({ ...unsentBounds, server: 10_000 }, Date.now);
  const app = Fastify();
  app.setErrorHandler((error, _request, reply) => reply.code(toApiError(error).row.http!).send());
  const operation = operations[name];
  const [url, asked] = name === 'users.list' ? ['/', '/'] : ['/:userId', '/ann'];
  app.route({
    ...{ method: operation.method, url },
    ...createRoute(name, operation, options, {
      idempotency: new Idempotency(options.limiter),
      ...{ unsent, early: { running: 0 } },
    }),
  });
  let answered = false;
  const ask = () =>
    app.inject({ method: operation.method, url: asked }).then((response) => ((answered = true), response));
  return {
    ...{ known, lookup, ran, began: began.promise, answer: ask(), ask, answered: () => answered },
    /** Another answer to the same caller waits to be read. */
    fill: () => unsent.watch('k1', Buffer.alloc(10_000), new EventEmitter() as ServerResponse),
  };
}

const turnOfLoop = () => new Promise((resolve) => setImmediate(resolve));

describe('SPEC 5: a read does not wait for the look-up of a credential that was accepted before', () => {
  it('it runs meanwhile, and is answered once the credential was found to be valid', async () => {
    const { known, lookup, ran, began, answer, answered } = scene('users.list');
    await began;
    await turnOfLoop();
    assert.equal(answered(), false);
    lookup.resolve({ caller: known });
    const { statusCode, headers } = await answer;
    assert.equal(statusCode, 200);
    assert.ok(headers['ratelimit-limit']);
    assert.deepEqual(ran, [known]);
  });

  it('what was read, or failed, for a credential that was revoked is thrown away', async () => {
    for (const result of [() => Promise.resolve({ data: [] }), () => Promise.reject(new Error('no'))]) {
      const { lookup, began, answer } = scene('users.list', result);
      await began;
      await turnOfLoop();
      lookup.reject(new ApiError('key_revoked'));
      assert.equal((await answer).statusCode, 401);
    }
  });

  it('it runs again if the environment has changed, and only then', async () => {
    for (const [plan, times] of [
      ['free', 1],
      ['growth', 2],
    ] as const) {
      const { lookup, ran, began, answer } = scene('users.list');
      await began;
      lookup.resolve({ caller: callerOf(plan) });
      assert.equal((await answer).statusCode, 200);
      assert.equal(ran.length, times);
      assert.deepEqual(ran.at(-1), callerOf(plan));
    }
  });

  it('its result is refused if too many answers came to wait to be read meanwhile', async () => {
    const { known, lookup, began, answer, fill } = scene('users.list');
    await began;
    await turnOfLoop();
    fill();
    lookup.resolve({ caller: known });
    assert.equal((await answer).statusCode, 429);
  });

  it('only a few run meanwhile, because their results wait in memory; the others wait for the look-up', async () => {
    const { known, lookup, ran, began, answer, ask } = scene('users.list');
    const answers = [answer, ...Array.from({ length: 29 }, ask)];
    await began;
    for (let i = 0; i < 5; i++) await turnOfLoop();
    assert.equal(ran.length, 16);
    lookup.resolve({ caller: known });
    for (const { statusCode } of await Promise.all(answers)) assert.equal(statusCode, 200);
    assert.equal(ran.length, 30);
  });

  it('what changes something waits', async () => {
    const { lookup, ran, answer } = scene('users.deactivate');
    for (let i = 0; i < 5; i++) await turnOfLoop();
    lookup.reject(new ApiError('key_revoked'));
    assert.equal((await answer).statusCode, 401);
    assert.deepEqual(ran, []);
  });
});
