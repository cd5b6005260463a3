// npm test [-- part-of-a-path …]: runs the test files, each in its own process, and ends with "N passed, N failed".
// --explore gives random tests new seeds (seed.ts).
// `*.serial.test.ts` run after all others, one at a time: they measure or kill several processes.
import { globSync } from 'node:fs';
import { resolve } from 'node:path';
import { run } from 'node:test';
import { parallel } from './parallel.ts';
import { provideParts } from './test-parts.ts';
import { collect, render, summary } from './test-reporter.ts';
import type { FileResult } from './test-reporter.ts';

const CONCURRENCY = 2;
const TEST_TIMEOUT_MS = 3 * 60_000; // a test that needs longer says so itself
const FILE_TIMEOUT_MS = 15 * 60_000;

const explores = process.argv.includes('--explore');
if (explores) process.env['TEST_SEED'] ??= 'random';
const filters = process.argv.slice(2).filter((argument) => argument !== '--explore');
const files = globSync([
  'packages/*/test/**/*.test.ts',
  'bench/test/**/*.test.ts',
  'scripts/test/**/*.test.ts',
])
  .filter((file) => !file.split('/').includes('node_modules'))
  .filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)))
  .sort();

process.exit(await main());

async function main(): Promise<number> {
  if (files.length === 0) return end(`No test file matches ${filters.join(' ')}`, []);
  const problem = provideParts(files);
  if (problem) return end(problem, []);

  const isSerial = (file: string) => file.endsWith('.serial.test.ts');
  const results = [
    ...(await parallel(
      files.filter((file) => !isSerial(file)),
      CONCURRENCY,
      runFile,
    )),
    ...(await parallel(files.filter(isSerial), 1, runFile)),
  ];
  const failed = results.filter((result) => result.failures.length > 0);
  if (failed.length === 0) return end(null, results);
  const names = failed.map((result) => `  ${result.file}`).join('\n');
  return end(`\nFailed in ${failed.length} of ${results.length} files:\n${names}`, results);
}

async function runFile(file: string): Promise<FileResult> {
  const timer = new AbortController();
  const timeout = setTimeout(() => timer.abort(), FILE_TIMEOUT_MS);
  const path = resolve(file);
  const events = run({ files: [path], concurrency: 1, timeout: TEST_TIMEOUT_MS, signal: timer.signal });
  const result = { ...(await collect(path, events)), file };
  clearTimeout(timeout);
  console.log(render(result));
  return result;
}

/** The last line is always the count; a run that could not start counts as one failure. */
function end(message: string | null, results: FileResult[]): number {
  if (message) console.log(message);
  console.log(results.length === 0 ? '0 passed, 1 failed' : summary(results));
  return message ? 1 : 0;
}
