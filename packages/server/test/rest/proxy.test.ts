import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rateLimits } from '@parley/protocol';
import { useStandingHere } from '../gateway/here.ts';
import { assertError, createApi } from '../support/api.ts';

const { here } = useStandingHere({ env: { CHAT_TRUST_PROXY: 'true' } });

/** Wrong credentials at the same moment, from these addresses: what is left to each. */
const remaining = (addresses: string[]): Promise<number[]> =>
  Promise.all(
    addresses.map(async (address) => {
      const answer = await createApi(here.url, 'wrong')('GET', '/v1/conversations', undefined, {
        'x-forwarded-for': address,
      });
      assertError(answer, 401, 'token_invalid');
      return Number(answer.headers.get('ratelimit-remaining'));
    }),
  );

describe('plans#addresses: CHAT_TRUST_PROXY', () => {
  it('counts by the address that the proxy saw, whatever the client wrote before it', async () => {
    const { burst } = rateLimits.anonymous;
    const many = Array.from({ length: 60 }, (_, i) => `203.0.113.${i}, 198.51.100.7`);
    assert.equal(Math.min(...(await remaining(many))), burst - 60, 'one address');
    const apart = Array.from({ length: 60 }, (_, i) => `198.51.100.${100 + i}`);
    assert.deepEqual(new Set(await remaining(apart)), new Set([burst - 1]), 'sixty addresses');
  });
});
