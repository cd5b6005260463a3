import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmod, chown, mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { after, afterEach, describe, test } from 'node:test';
import type { Conversation } from '@parley/protocol';
import { createApi } from '../support/api.ts';
import { alive, checkout, npmStart, postmasterPid, until } from './npm-start.ts';
import type { Command, Started } from './npm-start.ts';

/** `npm start` as the README promises it: whoever starts it, however it ended before, however it is told to stop. */

const scratch = await mkdtemp(join(tmpdir(), 'parley-start-'));
let directories = 0;
const started: Started[] = [];

function start(command: Command): Started {
  const one = npmStart(command);
  started.push(one);
  return one;
}
afterEach(async () => {
  for (const one of started.splice(0)) {
    if (one.process.exitCode === null && one.process.signalCode === null) killGroup(one);
    await one.exited;
  }
});
after(() => rm(scratch, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }));

/** Shows the checkout at a second place, to this command alone: $0 is the one, $1 the other, then the command. */
const bind = 'mount --bind "$0" "$1" && cd "$1" && shift && exec "$@"';

const newDirectory = (): string => join(scratch, `d${++directories}`);
const killGroup = (one: Started, signal: NodeJS.Signals = 'SIGKILL'): void => {
  process.kill(-one.process.pid!, signal);
};
const printedKey = (output: string): string | undefined => /secret key +(sk_live_\S+)/.exec(output)?.[1];

async function createConversation(url: string, key: string): Promise<string> {
  const { status, body } = await createApi(url, key)('POST', '/v1/conversations', {
    type: 'group',
    members: ['ann'],
  });
  assert.equal(status, 201);
  return (body as Conversation).id;
}

/** Ready, of use, and gone without a trace when told to stop. */
async function startUseStop(
  command: Command,
  dataDir: string,
  key?: string,
): Promise<{ key: string; output: string }> {
  const one = start(command);
  const url = await one.ready;
  const used = key ?? printedKey(one.output());
  assert.ok(used, one.output());
  await createConversation(url, used);
  const postgres = await postmasterPid(dataDir);
  assert.ok(alive(postgres));
  killGroup(one, 'SIGTERM');
  assert.equal(await one.exited, 0, one.output());
  assert.equal(alive(postgres), false, 'PostgreSQL is gone');
  assert.throws(() => killGroup(one), { code: 'ESRCH' }, 'and so is everything else');
  return { key: used, output: one.output() };
}

describe('npm start, twice in a row on the same data', () => {
  test('the first makes up a key and a password and shows them once; the second shows nothing', async () => {
    const dataDir = newDirectory();
    const env = { CHAT_DATA_DIR: dataDir };
    const first = await startUseStop({ env }, dataDir);
    assert.match(first.output, /environment +env_\w+ \(development\)/);
    assert.match(first.output, /owner +owner@localhost/);
    const password = /password +(\S+)/.exec(first.output)?.[1];
    assert.ok(password && password.length >= 16);
    assert.equal((await stat(dataDir)).mode & 0o077, 0, 'the data is for its owner alone');

    const second = await startUseStop({ env }, dataDir, first.key);
    for (const secret of [first.key, password, 'sk_live_', 'password'])
      assert.equal(second.output.includes(secret), false, 'never again');
  });

  test('what the environment gives is used, and not shown', async () => {
    const dataDir = newDirectory();
    const secretKey = `sk_live_${'k'.repeat(16)}_${'s'.repeat(32)}`;
    const env = {
      CHAT_DATA_DIR: dataDir,
      CHAT_BOOTSTRAP_ENVIRONMENTS: JSON.stringify([{ id: 'env_mine', kind: 'production', secretKey }]),
      CHAT_BOOTSTRAP_EMAIL: 'Me@Example.com',
      CHAT_BOOTSTRAP_PASSWORD: 'my own words',
    };
    const { output } = await startUseStop({ env }, dataDir, secretKey);
    assert.match(output, /environment +env_mine \(production\)/);
    assert.match(output, /owner +me@example\.com/);
    for (const secret of [secretKey, 'my own words']) assert.equal(output.includes(secret), false);
  });
});

const killed = newDirectory();

test('npm start after kill -9 of everything', async () => {
  const dataDir = killed;
  const env = { CHAT_DATA_DIR: dataDir };
  const first = start({ env });
  const key = printedKey(await first.ready.then(() => first.output()))!;
  const id = await createConversation(await first.ready, key);
  const postgres = await postmasterPid(dataDir);
  killGroup(first);
  process.kill(postgres, 'SIGKILL');
  const second = start({ env });
  const url = await second.ready;
  assert.equal((await createApi(url, key)('GET', `/v1/conversations/${id}`)).status, 200);
  killGroup(second, 'SIGTERM');
  assert.equal(await second.exited, 0);
});

test('npm start after kill -9 of npm and the service alone: PostgreSQL does not stay behind', async () => {
  const dataDir = killed;
  const first = start({ env: { CHAT_DATA_DIR: dataDir } });
  await first.ready;
  const postgres = await postmasterPid(dataDir);
  killGroup(first);
  const second = start({ env: { CHAT_DATA_DIR: dataDir } });
  await second.ready;
  assert.notEqual(await postmasterPid(dataDir), postgres);
  await until(() => !alive(postgres));
});

describe('SIGTERM while a request is under way: it is answered, then all ends with 0', () => {
  const signals: [string, (one: Started) => void][] = [
    ['to npm', (one) => one.process.kill('SIGTERM')],
    ['to the whole process group', (one) => killGroup(one, 'SIGTERM')],
    [
      'twice',
      (one) => {
        killGroup(one, 'SIGTERM');
        killGroup(one, 'SIGTERM');
      },
    ],
  ];
  const dataDir = newDirectory();
  let key: string | undefined;
  for (const [name, signal] of signals)
    test(name, async () => {
      const one = start({ env: { CHAT_DATA_DIR: dataDir, CHAT_LOG_LEVEL: 'info' } });
      const url = await one.ready;
      key ??= printedKey(one.output())!;
      const id = await createConversation(url, key);
      const postgres = await postmasterPid(dataDir);

      // Its head has arrived, and its body comes when the service is already stopping.
      const patch = request(`${url}/v1/conversations/${id}`, {
        method: 'PATCH',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          expect: '100-continue',
        },
      });
      const answered = once(patch, 'response') as Promise<[IncomingMessage]>;
      patch.flushHeaders();
      await once(patch, 'continue');
      signal(one);
      await until(() => one.output().includes('"stopping"'));
      patch.end(JSON.stringify({ name: 'in flight' }));
      const [answer] = await answered;
      assert.deepEqual([answer.statusCode, ((await json(answer)) as Conversation).name], [200, 'in flight']);
      assert.equal(await one.exited, 0, one.output());
      assert.equal(alive(postgres), false, 'PostgreSQL is gone');
      assert.throws(() => killGroup(one), { code: 'ESRCH' }, 'nothing of the group is left');
      await assert.rejects(fetch(`${url}/healthz`));
    });
});

// Only root can be somebody else; where the tests run as an ordinary user, all of the above is that user's.
if (process.getuid?.() === 0)
  describe('npm start from a checkout under a 0700 home', () => {
    for (const [name, uid] of [
      ['as root', 0],
      ['as an ordinary user', 65_534],
      ['as a user id without a name', 54_321],
    ] as const)
      test(name, async () => {
        const home = newDirectory();
        await mkdir(join(home, 'checkout'), { recursive: true });
        await chmod(home, 0o700);
        await chown(home, uid, uid);
        await chmod(scratch, 0o755);
        const dataDir = join(home, 'data');
        const bound = ['unshare', '--mount', '--propagation', 'private', '--', 'sh', '-c', bind, checkout];
        const user = ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--'];
        const command = {
          env: { HOME: home, CHAT_DATA_DIR: dataDir },
          cwd: '/',
          prefix: [...bound, join(home, 'checkout'), ...(uid === 0 ? [] : user)],
        };
        const { key } = await startUseStop(command, dataDir);
        await startUseStop(command, dataDir, key);
        assert.equal((await stat(dataDir)).uid, uid);
      });
  });
