import assert from 'node:assert/strict';
import { isAbsolute } from 'node:path';
import { describe, test } from 'node:test';
import { ConfigError, readConfig } from '../../src/config.ts';

describe('settings', () => {
  test('without any, the service runs on this machine alone', () => {
    const { config, unknown } = readConfig({});
    assert.deepEqual(unknown, []);
    assert.equal(config.port, 8080);
    assert.equal(config.host, '127.0.0.1');
    assert.ok(isAbsolute(config.dataDir));
    assert.equal(config.databaseUrl, undefined);
    assert.equal(config.metricsPort, undefined, 'metrics are off by default');
    assert.equal(readConfig({ HOST: '0.0.0.0' }).config.metricsHost, '127.0.0.1', 'and for this machine');
    assert.equal(config.eventRetentionMs, 7 * 24 * 3_600_000);
    assert.equal(config.trustProxy, false);
  });

  test('an unconfigured first start makes a development environment on this machine alone', () => {
    const kind = (env: Record<string, string>) => readConfig(env).config.bootstrap.kind;
    for (const HOST of ['127.0.0.1', '127.0.0.2', '::1', 'localhost'])
      assert.equal(kind({ HOST }), 'development', HOST);
    for (const HOST of ['0.0.0.0', '::', '192.168.0.7', 'chat.example.com', '127.evil.example'])
      assert.equal(kind({ HOST }), 'production', HOST);
    assert.equal(kind({ DATABASE_URL: 'postgres://x' }), 'production');
    assert.equal(kind({ HOST: '0.0.0.0', DATABASE_URL: 'postgres://x' }), 'production');
    assert.equal(kind({ CHAT_TRUST_PROXY: 'true' }), 'production');
    assert.equal(kind({ CHAT_TRUST_PROXY: 'false' }), 'development');
    assert.equal(kind({ CHAT_ORIGIN: 'https://chat.example.com' }), 'production');
  });

  test('webhooks#targets: private targets are allowed unasked on a developer’s own machine alone', () => {
    const allowed = (env: Record<string, string>) => readConfig(env).config.allowPrivateTargets;
    assert.equal(allowed({}), true);
    assert.equal(allowed({ HOST: '::1' }), true);
    for (const env of [
      { HOST: '0.0.0.0' },
      { DATABASE_URL: 'postgres://x' },
      { CHAT_TRUST_PROXY: 'true' },
      { CHAT_ORIGIN: 'https://chat.example.com' },
    ] as Record<string, string>[]) {
      assert.equal(allowed(env), false, JSON.stringify(env));
      assert.equal(allowed({ ...env, CHAT_ALLOW_PRIVATE_TARGETS: 'true' }), true);
    }
    assert.equal(allowed({ CHAT_ALLOW_PRIVATE_TARGETS: 'false' }), false);
  });

  test('an empty value is as good as none; blanks around one do not count', () => {
    const { config } = readConfig({ PORT: '', CHAT_METRICS_PORT: ' ', DATABASE_URL: ' postgres://x ' });
    assert.deepEqual(
      [config.port, config.metricsPort, config.databaseUrl],
      [8080, undefined, 'postgres://x'],
    );
  });

  for (const [name, values] of Object.entries({
    PORT: ['x', '-1', '65536', '80.5', '1e9', '0x1g'],
    CHAT_METRICS_PORT: ['0', 'on'],
    CHAT_DATABASE_POOL: ['0', '201', 'many'],
    CHAT_PROCESSES: ['0', '257', 'all'],
    CHAT_LOG_LEVEL: ['loud', 'INFO'],
    CHAT_EVENT_RETENTION: ['1d', '7', '7 d'],
    CHAT_ALLOW_PRIVATE_TARGETS: ['yes', '1', 'TRUE'],
    CHAT_TRUST_PROXY: ['on'],
    CHAT_ROLES: ['api,cook', ','],
    CHAT_MEDIA_PORT: ['80', 'x', '65001'],
    CHAT_MEDIA_WORKERS: ['0', 'many'],
    CHAT_MEDIA_CODECS: ['h265', 'vp8'],
    CHAT_TURN_URLS: ['example.com', 'http://x', 'turn:a b', 'turn:x'],
  }))
    for (const value of values)
      test(`${name}=${value} is refused by name`, () => {
        assert.throws(
          () => readConfig({ [name]: value }),
          (error: unknown) => error instanceof ConfigError && error.message.includes(name),
        );
      });

  test('retention: 24h, 72h, 7d, 30d', () => {
    for (const [text, hours] of Object.entries({ '24h': 24, '72h': 72, '7d': 168, '30d': 720 }))
      assert.equal(readConfig({ CHAT_EVENT_RETENTION: text }).config.eventRetentionMs, hours * 3_600_000);
  });

  test('unknown CHAT_ settings are reported, others are not ours', () => {
    assert.deepEqual(readConfig({ CHAT_PORT: '1', CHAT_DATADIR: 'x', PATH: '/bin' }).unknown, [
      'CHAT_PORT',
      'CHAT_DATADIR',
    ]);
  });
});
