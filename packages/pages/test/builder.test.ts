import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { answerWith } from '../src/answer.ts';
import { runBuilder } from '../src/builder.ts';
import { compressed, packed, unpacked } from '../src/files.ts';

const scratch = await mkdtemp(join(tmpdir(), 'parley-pages-'));
after(() => rm(scratch, { recursive: true, force: true }));
const beside = (name: string): URL => new URL(name, import.meta.url);

/** Whoever has ended but was not waited for yet has no command line any more. */
const running = async (pid: number): Promise<boolean> =>
  (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')) !== '';

test('a process that ends while it builds leaves neither the builder nor what that started', async () => {
  const note = join(scratch, 'note');
  const child = spawn(process.execPath, ['--no-warnings', fileURLToPath(beside('stopped.ts')), note], {
    stdio: 'inherit',
    detached: true,
  });
  assert.deepEqual(await once(child, 'close'), [0, null]);
  assert.throws(() => process.kill(-child.pid!, 0), { code: 'ESRCH' }, 'nothing of its group is left');
  const pids = (await readFile(note, 'utf8')).split(' ').map(Number);
  assert.equal(pids.length, 2);
  for (const pid of pids) while (await running(pid)) await delay(20);
});

test('a builder that fails says why', async () => {
  const missing = beside('missing.ts');
  await assert.rejects(
    runBuilder(missing),
    /The builder of \S+missing\.ts failed: [\s\S]*ERR_MODULE_NOT_FOUND/,
  );
});

test('files are kept with their compressed forms, and answered in the form that the browser takes', async () => {
  const files = unpacked(
    packed(
      await compressed(
        new Map([
          ['main-1.js', Buffer.from('x'.repeat(1_000))],
          ['font-1.woff2', Buffer.from('font')],
        ]),
      ),
    ),
  );
  const script = (accept: string) => answerWith('main-1.js', files.get('main-1.js'), accept);
  assert.equal(script('gzip, br').headers['content-encoding'], 'br');
  assert.equal(script('gzip, br;q=0').headers['content-encoding'], 'gzip');
  assert.equal(script('').headers['content-encoding'], undefined);
  assert.notEqual(script('br').headers['etag'], script('').headers['etag']);
  assert.equal(script('').body.toString(), 'x'.repeat(1_000));
  const font = answerWith('font-1.woff2', files.get('font-1.woff2'), 'br');
  assert.deepEqual(
    [font.headers['content-type'], font.headers['content-encoding']],
    ['font/woff2', undefined],
  );
  assert.equal(answerWith('main-2.js', files.get('main-2.js'), 'br').status, 404);
});
