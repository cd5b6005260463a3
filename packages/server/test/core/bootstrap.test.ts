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
  [{ id: 'a' }, '0.id'],
  [{ kind: 'test' }, '0.kind'],
  [{ name: '' }, '0.name'],
  [{ plan: 'gold' }, '0.plan'],
  [{ secretKey: 'sk_live_short' }, '0.secretKey'],
  [{ settings: { pushMode: 'all' } }, '0.settings.pushMode'],
  [{ settings: { devTokens: 'yes' } }, '0.settings.devTokens'],
  [{ settings: { nope: 1 } }, '0.settings'],
] as const)
  test(`CHAT_BOOTSTRAP_ENVIRONMENTS with ${JSON.stringify(change)} is refused by place`, () => {
    assert.throws(() => parse({ ...one, ...change }), {
      message: new RegExp(`^CHAT_BOOTSTRAP_ENVIRONMENTS\\.${where.replaceAll('.', '\\.')}`),
    });
  });
