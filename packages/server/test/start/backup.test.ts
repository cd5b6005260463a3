import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { assertContiguous, allEvents } from '../core/tools.ts';
import { createApi, serverApi } from '../support/api.ts';
import { parley } from '../support/cli.ts';
import { startService } from '../support/service.ts';
import { signToken } from '../support/tokens.ts';
import { use, useService } from '../support/use.ts';

/** `npm run parley -- backup` and `restore`: the whole service out of one file. */

const scratch = use(
  async () => ({ path: await mkdtemp(join(tmpdir(), 'parley-backup-')) }),
  ({ path }) => rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }),
);
const { service, scene } = useService({ own: true });

const withEnv = (env: Record<string, string>) => ({ ...service, env: { ...service.env, ...env } });
const complaint = (pattern: RegExp) => (error: { stderr?: string }) => pattern.test(String(error.stderr));

test('a backup taken under load, encrypted, is restored into a new directory: consistent, with files and keys', async () => {
  const ann = await scene.actor('ann');
  const group = await scene.group(ann, []);
  await scene.send(ann, group.id, {
    clientMsgId: 'first',
    text: 'before',
    metadata: { much: 'ümlaut "quoted" \\ \n' },
  });
  const media = join(service.dataDir, 'media', 'deep', 'er');
  await mkdir(media, { recursive: true });
  const bytes = Buffer.from(Array.from({ length: 2_000_000 }, (_, i) => (i * 31) & 255));
  await writeFile(join(media, 'file'), bytes);

  let sending = true;
  const load = (async () => {
    let sent = 0;
    for (; sending; sent++) await scene.send(null, group.id, { text: `during ${sent}` });
    return sent;
  })();
  const file = join(scratch.path, 'backup');
  const secret = { PARLEY_BACKUP_PASSPHRASE: 'correct horse' };
  const made = await parley(withEnv(secret), 'backup', file);
  assert.equal(made.masterKey, true);
  assert.ok(made.rows > 10 && made.files === 2, JSON.stringify(made));
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  sending = false;
  const sent = await load;
  assert.ok(sent > 0);
  const { lastSeq } = await scene.item(ann, group.id);
  const { body: later } = await ann.api('POST', '/v1/sync', { cursor: null });
  assert.ok(!(await readFile(file)).includes('before'), 'nobody can read it');
  await assert.rejects(
    parley(withEnv(secret), 'backup', file),
    complaint(/EEXIST|exists/),
    'nothing is overwritten',
  );

  const dataDir = join(scratch.path, 'new', 'data');
  const into = { CHAT_DATA_DIR: dataDir };
  await assert.rejects(parley(withEnv(into), 'restore', file), complaint(/encrypted/));
  await assert.rejects(
    parley(withEnv({ ...into, PARLEY_BACKUP_PASSPHRASE: 'wrong horse' }), 'restore', file),
    complaint(/damaged, or the passphrase is another/),
  );
  await assert.rejects(parley(withEnv(secret), 'restore', file), complaint(/is not empty/));
  assert.deepEqual(await readdir(join(scratch.path, 'new')), [], 'nothing is left of what failed');
  const restored = await parley(withEnv({ ...into, ...secret }), 'restore', file);
  assert.equal(restored.rows, made.rows);

  const again = await startService({ dataDir });
  try {
    assert.deepEqual(await readFile(join(dataDir, 'media', 'deep', 'er', 'file')), bytes);
    const there = serverApi(again.url);
    const events = await allEvents(there, group.id);
    assertContiguous(events.map((e) => e.seq));
    assert.ok(events.length >= 2 && events.length < lastSeq, `${events.length} of ${lastSeq}`);
    const { body } = await there('GET', `/v1/conversations/${group.id}`);
    assert.equal(body.lastSeq, events.at(-1)!.seq, 'one moment: counts and messages agree');
    const old = createApi(again.url, signToken({ sub: ann.id }));
    const repeated = await old('POST', `/v1/conversations/${group.id}/messages`, {
      clientMsgId: 'first',
      text: 'again',
    });
    assert.equal(repeated.body.text, 'before', 'it is known which messages were sent');
    const next = await old('POST', `/v1/conversations/${group.id}/messages`, {
      clientMsgId: 'n',
      text: 'after',
    });
    assert.deepEqual([next.status, next.body.seq], [201, body.lastSeq + 1]);
    const back = await old('POST', '/v1/sync', { cursor: later.cursor });
    assert.equal(back.body.fullReload, true, 'a client that was further on loads again');
  } finally {
    await again.stop();
  }
});

test('a file that is cut short, and one that is none, restore nothing', async () => {
  const file = join(scratch.path, 'plain');
  await parley(service, 'backup', file);
  const whole = await readFile(file);
  await writeFile(`${file}-cut`, whole.subarray(0, whole.length - 40));
  await writeFile(`${file}-none`, 'hello');
  const dataDir = join(scratch.path, 'nothing');
  for (const [name, pattern] of [
    ['cut', /damaged|not whole/],
    ['none', /not a backup/],
  ] as const)
    await assert.rejects(
      parley(withEnv({ CHAT_DATA_DIR: dataDir }), 'restore', `${file}-${name}`),
      complaint(pattern),
    );
  await assert.rejects(stat(dataDir), { code: 'ENOENT' });
});
