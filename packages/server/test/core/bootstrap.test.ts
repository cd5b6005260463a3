import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseEnvironments } from '../../src/features/accounts/bootstrap.ts';

const one = { id: 'env_a', kind: 'production' };
const parse = (...environments: object[]) => parseEnvironments(JSON.stringify(environments));

test('CHAT_BOOTSTRAP_ENVIRONMENTS takes what an environment can have', () => {
  const full = {
    ...one,
    name: 'A',
    plan: 'growth',
    secretKey: `sk_live_${'a'.repeat(16)}_${'b'.repeat(32)}`,
    settings: { clientConversationCreation: 'direct', devTokens: false, pushMode: 'webhook' },
  };
  assert.deepEqual(parse(one, full), [one, full]);
});

for (const [change, where] of [
  [{ id: 'a' }, 'id'],
  [{ kind: 'test' }, 'kind'],
  [{ name: '' }, 'name'],
  [{ plan: 'gold' }, 'plan'],
  [{ secretKey: 'sk_live_short' }, 'secretKey'],
  [{ settings: { pushMode: 'all' } }, 'settings.pushMode'],
  [{ settings: { devTokens: 'yes' } }, 'settings.devTokens'],
  [{ settings: { nope: 1 } }, 'settings.nope'],
] as const)
  test(`CHAT_BOOTSTRAP_ENVIRONMENTS with ${JSON.stringify(change)} is refused by place`, () => {
    assert.throws(() => parse({ ...one, ...change }), {
      message: new RegExp(`CHAT_BOOTSTRAP_ENVIRONMENTS\\[0\\]\\.${where.replaceAll('.', '\\.')}\\b`),
    });
  });
