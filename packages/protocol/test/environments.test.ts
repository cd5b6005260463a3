import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultSettings, effectiveSettings, EnvironmentSettings } from '../src/index.ts';

test('identity#settings: every setting has a default of its own schema', () => {
  assert.deepEqual(Object.keys(defaultSettings), Object.keys(EnvironmentSettings.properties));
});

test('identity#settings: what is given wins over the default, but development tokens are never on in production', () => {
  assert.deepEqual(effectiveSettings('development', {}), defaultSettings);
  assert.deepEqual(effectiveSettings('development', { devTokens: false, pushMode: 'off' }), {
    ...defaultSettings,
    devTokens: false,
    pushMode: 'off',
  });
  for (const given of [{}, { devTokens: true }, { devTokens: false }])
    assert.equal(effectiveSettings('production', given).devTokens, false);
});
