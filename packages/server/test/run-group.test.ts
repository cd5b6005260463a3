import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { runGroup } from '../src/platform/media/run-group.ts';

/** A process that ended and that nobody asked about yet (Z) does nothing any more. */
const alive = (pid: number): boolean => {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
};

test('what a command started ends with it, before anybody is told', async () => {
  const stop = new AbortController();
  const started = Promise.withResolvers<number>();
  const ended = runGroup('sh', ['-c', 'sleep 1000 & echo $!; wait'], {
    signal: stop.signal,
    line: (line) => {
      started.resolve(Number(line));
    },
  });
  const pid = await started.promise;
  assert.ok(alive(pid));
  stop.abort();
  assert.equal(await ended, null);
  assert.ok(!alive(pid), 'the process that it started is gone');
});

test('gives the exit code, and starts nothing after the end was asked for', async () => {
  assert.equal(await runGroup('sh', ['-c', 'exit 3']), 3);
  await assert.rejects(runGroup('sh', ['-c', 'exit 0'], { signal: AbortSignal.abort() }), {
    name: 'AbortError',
  });
  await assert.rejects(runGroup('no-such-command', []), { code: 'ENOENT' });
});
