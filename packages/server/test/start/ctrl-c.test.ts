import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { alive, postmasterPid, start, until } from './npm-start.ts';

/** What a person at a terminal sees from the first start to the last Ctrl-C. */

const scratch = await mkdtemp(join(tmpdir(), 'parley-ctrl-c-'));
after(() => rm(scratch, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }));

const firstStart = `Parley is ready at URL
  demo         URL/
  dashboard    URL/dashboard
  docs         URL/docs

Shown once, so keep them:
  environment  env_ID (development), for this machine only
  secret key   sk_live_SECRET
  owner        owner@localhost
  password     PASSWORD
`;

test('the first start says where everything is and what is shown once; a second Ctrl-C ends at once what the first lets finish', async () => {
  const one = start({ env: { CHAT_DATA_DIR: scratch, CHAT_LOG_LEVEL: 'info' } });
  const signal = (name: NodeJS.Signals): void => void process.kill(-one.process.pid!, name);
  try {
    const url = await one.ready;
    await until(() => /password +\S+\n/.test(one.output()));
    const shown = one
      .output()
      .replaceAll(url, 'URL')
      .replace(/env_\w+/, 'env_ID')
      .replace(/sk_live_\w+/, 'sk_live_SECRET')
      .replace(/(password +)\S+/, '$1PASSWORD');
    assert.equal(shown, firstStart);

    const postgres = await postmasterPid(scratch);
    const key = /sk_live_\w+/.exec(one.output())![0];
    // Its body never comes, so the service would wait for it.
    const held = request(`${url}/v1/conversations`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        expect: '100-continue',
      },
    });
    held.on('error', () => undefined);
    held.flushHeaders();
    await once(held, 'continue');
    // The whole process group, as a terminal does it.
    signal('SIGINT');
    await until(() => one.output().includes('"stopping"'));
    // Two signals within 300 ms are one key: the terminal sends one and npm another.
    await delay(400);
    assert.ok(alive(postgres), 'the store is there while requests are answered');
    signal('SIGINT');
    assert.equal(await one.exited, 130, one.output());
    await until(() => !alive(postgres));
    assert.throws(() => signal('SIGKILL'), { code: 'ESRCH' }, 'nothing of the group is left');
    assert.doesNotMatch(one.output(), /FATAL|"level":"(warn|error)"/);
  } finally {
    if (one.process.exitCode === null && one.process.signalCode === null) signal('SIGKILL');
    await one.exited;
  }
});
