import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { get } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { outsidePostgres } from '../core/tools.ts';
import { areas } from '../../src/cli/doctor/finding.ts';
import { assertError, createApi, serverApi } from '../support/api.ts';
import { environments, startService } from '../support/service.ts';
import { freePort, run, start, until } from './npm-start.ts';

const upgradeHeaders = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': randomBytes(16).toString('base64'),
  'sec-websocket-protocol': 'chat.v1',
};

const scratch = await mkdtemp(join(tmpdir(), 'parley-settings-'));
after(() => rm(scratch, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }));

describe('bad settings end the start with 1 and say what is wrong', () => {
  const cases: [string, Record<string, string>, RegExp][] = [
    ['a port that is none', { PORT: 'http' }, /PORT must be a whole number from 0 to 65535; it is "http"/],
    ['an unknown level', { CHAT_LOG_LEVEL: 'loud' }, /CHAT_LOG_LEVEL must be one of fatal, /],
    ['a short master key', { CHAT_MASTER_KEY: 'c2hvcnQ=' }, /CHAT_MASTER_KEY must be 32 bytes in base64/],
    ['no JSON', { CHAT_BOOTSTRAP_ENVIRONMENTS: 'dev' }, /CHAT_BOOTSTRAP_ENVIRONMENTS is not JSON/],
    [
      'an environment id that is none',
      { CHAT_BOOTSTRAP_ENVIRONMENTS: '[{"id":"dev","kind":"development"}]' },
      /CHAT_BOOTSTRAP_ENVIRONMENTS\[0\]\.id/,
    ],
    ['several processes without Redis', { CHAT_PROCESSES: '2' }, /CHAT_PROCESSES above 1 needs REDIS_URL/],
  ];
  for (const [name, env, message] of cases)
    test(name, async () => {
      const one = start({ env: { CHAT_DATA_DIR: join(scratch, 'bad'), ...env } });
      assert.equal(await one.exited, 1);
      assert.match(one.output(), /Parley could not start: /);
      assert.match(one.output(), message);
      assert.doesNotMatch(one.output(), /^\s+at /m, 'no stack');
    });

  test('a data directory that is a file', async () => {
    await writeFile(join(scratch, 'file'), '');
    const one = start({ env: { CHAT_DATA_DIR: join(scratch, 'file') } });
    assert.equal(await one.exited, 1);
    assert.match(one.output(), /Parley could not start: .*file/);
    assert.doesNotMatch(one.output(), /^\s+at /m, 'no stack');
  });

  test('a port that somebody has: nothing is left running', async () => {
    const taken = createServer().listen(await freePort(), '127.0.0.1');
    await once(taken, 'listening');
    const dataDir = join(scratch, 'taken');
    const port = String((taken.address() as AddressInfo).port);
    const one = start({ env: { CHAT_DATA_DIR: dataDir, PORT: port } });
    assert.equal(await one.exited, 1);
    taken.close();
    assert.match(one.output(), new RegExp(`Parley could not start: .*${port}`));
    assert.doesNotMatch(one.output(), /^\s+at /m, 'no stack');
    assert.doesNotMatch(one.output(), /FATAL/, 'nothing that PostgreSQL says on its way up');
    assert.equal((await readdir(join(dataDir, 'postgres'))).includes('postmaster.pid'), false);
  });

  test('an unknown setting is reported, and --help names the known ones', async () => {
    const one = run(['npm', 'start', '--', '--help'], { env: {} });
    assert.equal(await one.exited, 0);
    assert.match(one.output(), /CHAT_DATA_DIR .*default \.\/data/);
    const other = start({
      env: { CHAT_DATADIR: 'x', CHAT_MASTER_KEY: 'bad', CHAT_DATA_DIR: join(scratch, 'u') },
    });
    await other.exited;
    assert.match(other.output(), /CHAT_DATADIR is not a setting of Parley/);
  });
});

describe('an outside PostgreSQL that comes and goes', () => {
  test('/readyz is 503 while it is down, and recovers by itself; so does every request', async () => {
    const postgres = await outsidePostgres();
    const key = environments.dev.secretKey;
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    await postgres.stop();
    const dataDir = join(scratch, 'outside');
    const env = {
      PORT: String(port),
      CHAT_DATA_DIR: dataDir,
      DATABASE_URL: postgres.url,
      CHAT_MASTER_KEY: randomBytes(32).toString('base64'),
      CHAT_BOOTSTRAP_ENVIRONMENTS: JSON.stringify([environments.dev]),
    };
    const status = async (path: string): Promise<number> => {
      const response = await fetch(url + path).catch(() => undefined);
      await response?.arrayBuffer();
      return response?.status ?? 0;
    };
    const one = start({ env });
    try {
      await until(async () => (await status('/readyz')) === 503);
      assert.equal(await status('/healthz'), 200, 'it lives');
      const page = await fetch(`${url}/`, { headers: { accept: 'text/html' } });
      assert.equal(page.status, 503);
      assert.match(page.headers.get('request-id') ?? '', /^req_/);
      assert.match(page.headers.get('ratelimit-limit') ?? '', /^\d+$/);
      assert.match(await page.text(), /http-equiv="refresh"/, 'a page that looks again by itself');
      const refused = await createApi(url, key)('GET', '/v1/users');
      assertError(refused, 503, 'service_unavailable');
      assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/);
      // A socket during the start: not "there is no such path", but "come again".
      const upgrade = get(`${url}/v1`, { headers: upgradeHeaders });
      const [answer] = (await once(upgrade, 'response')) as [IncomingMessage];
      answer.resume();
      assert.equal(answer.statusCode, 503);
      assert.match(answer.headers['retry-after'] ?? '', /^\d+$/);
      assert.match(String(answer.headers['request-id']), /^req_/);
      assert.match(String(answer.headers['ratelimit-limit']), /^\d+$/);
      assert.doesNotMatch(one.output(), /"level":"error"/, 'a start that takes its time is no error');
      await postgres.start();
      assert.equal(await one.ready, url);
      await until(async () => (await status('/readyz')) === 200);
      assert.equal((await createApi(url, key)('PUT', '/v1/users/ann', { name: 'Ann' })).status, 200);

      await postgres.stop();
      await until(async () => (await status('/readyz')) === 503);
      assertError(await createApi(url, key)('GET', '/v1/users/ann'), 503, 'service_unavailable');
      await postgres.start();
      await until(async () => (await status('/readyz')) === 200);
      const { body } = await createApi(url, key)('GET', '/v1/users/ann');
      assert.equal((body as { name: string }).name, 'Ann');

      await postgres.stop();
      process.kill(-one.process.pid!, 'SIGTERM');
      assert.equal(await one.exited, 0, 'it ends well without its store, too');

      const waiting = start({ env });
      await until(async () => (await status('/readyz')) === 503);
      process.kill(-waiting.process.pid!, 'SIGTERM');
      assert.equal(await waiting.exited, 0, 'also while it waits for it');
    } finally {
      if (one.process.exitCode === null) process.kill(-one.process.pid!, 'SIGKILL');
      await postgres.dispose();
    }
  });
});

describe('npm run parley', () => {
  test('a data directory that does not exist is an error, and nothing is made', async () => {
    const dataDir = join(scratch, 'nowhere');
    const file = join(scratch, 'no-backup');
    for (const args of [
      ['backup', file],
      ['env', 'list'],
    ]) {
      const one = run([process.execPath, 'packages/server/src/cli.ts', ...args], {
        env: { CHAT_DATA_DIR: dataDir },
      });
      assert.equal(await one.exited, 2);
      assert.match(one.output(), /^The data directory \S*nowhere does not exist\. Set CHAT_DATA_DIR/);
    }
    const left = await readdir(scratch);
    assert.deepEqual(
      left.filter((name) => ['nowhere', 'no-backup'].includes(name)),
      [],
    );
  });

  test('works beside the running service, and without it', async () => {
    const service = await startService();
    try {
      const parley = async (...args: string[]) => {
        const npm = ['npm', 'run', '--silent', 'parley', '--'];
        const command = args[1] === 'list' ? npm : [process.execPath, 'packages/server/src/cli.ts'];
        const one = run([...command, ...args], { env: service.env });
        const code = await one.exited;
        return { code, output: one.output(), answer: one.stdout() };
      };
      const json = async (...args: string[]): Promise<Record<string, string>> => {
        const { code, output, answer } = await parley(...args, '--json');
        assert.equal(code, 0, output);
        return JSON.parse(answer) as Record<string, string>;
      };
      const made = await json('env', 'create', '--name', 'Made', '--kind', 'production', '--id', 'env_made');
      assert.equal(made['id'], 'env_made');
      const first = createApi(service.url, made['secretKey']!);
      assert.equal((await first('GET', '/v1/users')).status, 200, 'its key works at once');

      const { secretKey } = await json('key', 'create', 'env_made', '--name', 'second');
      assert.equal((await createApi(service.url, secretKey!)('GET', '/v1/users')).status, 200);
      await json('key', 'revoke', 'env_made', made['secretKey']!.split('_')[2]!);
      assertError(await first('GET', '/v1/users'), 401, 'key_revoked');

      const { token } = await json('token', 'env_made', 'ann', '--expires-in', '60');
      assert.equal((await createApi(service.url, token!)('GET', '/v1/conversations')).status, 200);

      const plan = async () => (await createApi(service.url, secretKey!)('GET', '/v1/usage')).body.plan.name;
      assert.equal(await plan(), 'free');
      await json('env', 'set', 'env_made', '--plan', 'growth');
      assert.equal(await plan(), 'growth', 'at once');

      await json('env', 'set', 'env_made', '--status', 'suspended');
      assert.equal((await createApi(service.url, secretKey!)('GET', '/v1/users')).status, 403);
      const help = await parley('--help');
      assert.equal(help.code, 0, help.output);
      assert.match(help.output, /env create +Creates an environment/);
      for (const args of [['nonsense'], ['env', 'list', '--nope'], ['token', 'env_made', 'b d']]) {
        const { code, output } = await parley(...args);
        assert.equal(code, 2, output);
        assert.doesNotMatch(output, /at file:/, 'a message, not a stack');
      }

      // The doctor sees the running service, and later that it does not run.
      const examine = async (env: Record<string, string>) => {
        const one = run([process.execPath, 'packages/server/src/cli.ts', 'doctor', '--json'], {
          env: { ...service.env, PORT: String(service.port), ...env },
        });
        const code = await one.exited;
        const found = JSON.parse(one.stdout()) as { area: string; status: string; found: string }[];
        return { code, found, of: (area: string) => found.find((one) => one.area === area)! };
      };
      const well = await examine({ CHAT_DATADIR: 'x' });
      assert.equal(well.code, 0, JSON.stringify(well.found));
      assert.deepEqual([...new Set(well.found.map(({ area }) => area))].sort(), [...areas].sort());
      assert.match(well.of('settings').found, /CHAT_DATADIR is not a setting/);
      assert.match(well.of('ports').found, /the service answers at .*: ready/);

      assert.equal(await service.stop(), 0);
      const down = await examine({ CHAT_MASTER_KEY: randomBytes(32).toString('base64') });
      assert.equal(down.code, 1);
      assert.equal(down.of('key').status, 'problem');
      assert.match(down.of('ports').found, /the service does not run/);
      const keys = (await json('key', 'list', 'env_made')) as unknown as { revokedAt: string | null }[];
      assert.equal(keys.length, 2);
      assert.equal(JSON.stringify(keys).includes(secretKey!.split('_')[3]!), false, 'a list shows no secret');
      await json('env', 'set', 'env_made', '--status', 'active');
      const again = await service.restart();
      assert.equal((await createApi(again.url, secretKey!)('GET', '/v1/users')).status, 200);
      assert.equal((await serverApi(again.url)('GET', '/v1/users')).status, 200);
      await again.stop();
    } finally {
      await service.dispose();
    }
  });
});
