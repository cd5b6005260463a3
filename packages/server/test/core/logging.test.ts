import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { readable } from '../../src/platform/logging.ts';

test('a line for people has the time, the level, the words and the facts; a stack only with an error', () => {
  const line = (more: object) =>
    readable(
      JSON.stringify({ level: 'info', time: '2026-01-15T09:30:00.900Z', pid: 1, msg: 'ready', ...more }),
    );
  assert.equal(line({ port: 8080, env: 'env_a' }), '09:30:00 info  ready port=8080 env=env_a\n');
  const err = { message: 'no room', stack: 'Error: no room\n    at x' };
  assert.equal(line({ level: 'warn', err }), '09:30:00 warn  ready no room\n');
  assert.equal(line({ level: 'error', err }), `09:30:00 error ready no room\n${err.stack}\n`);
  assert.equal(readable('no JSON'), 'no JSON');
});

test('a terminal gets lines for people, anything else JSON', () => {
  const logging = new URL('../../src/platform/logging.ts', import.meta.url).href;
  const code = `const { createLogger } = await import('${logging}'); createLogger('info').info({ a: 1 }, 'ready');`;
  const command = [process.execPath, '--input-type=module', '-e', code];
  const shell = command.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
  const seen = execFileSync('script', ['-qec', shell, '/dev/null'], { encoding: 'utf8' });
  assert.match(seen, /^\d\d:\d\d:\d\d info {2}ready a=1\r?\n$/);
  const piped = execFileSync('sh', ['-c', `${shell} 2>&1`], { encoding: 'utf8' });
  assert.equal((JSON.parse(piped) as { msg: string }).msg, 'ready');
});

test('a log that nobody reads stops nothing; what does not fit is left out and counted', async () => {
  const logging = new URL('../../src/platform/logging.ts', import.meta.url).href;
  const code = `const { createLogger } = await import('${logging}');
    const logger = createLogger('info');
    for (let i = 0; i < 20_000; i++) logger.info({ text: 'x', more: 'y'.repeat(1_000) }, 'line');
    process.stdout.write('went on');`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code]);
  assert.match(String(await once(child.stdout, 'data')), /went on/);
  const lines = (await text(child.stderr)).trim().split('\n');
  const last = JSON.parse(lines.at(-1)!) as { msg: string; lines: number };
  assert.match(last.msg, /left out/);
  assert.equal(lines.length - 1 + last.lines, 20_000);
});

test('whoever has stopped reading the log does not hold up the end, and whoever reads gets the last line', async () => {
  const logging = new URL('../../src/platform/logging.ts', import.meta.url).href;
  const code = `const { createLogger, endLog } = await import('${logging}');
    const logger = createLogger('info');
    for (let i = 0; i < 2_000; i++) logger.info({ more: 'y'.repeat(1_000) }, 'line');
    await new Promise(setImmediate);
    logger.info('stopped');
    await endLog(logger);
    process.exit(0);`;
  const run = () => spawn(process.execPath, ['--input-type=module', '-e', code]);
  assert.deepEqual(await once(run(), 'exit'), [0, null], 'nobody reads');
  const read = run();
  assert.match(await text(read.stderr), /"msg":"stopped"\}\n$/);
});
