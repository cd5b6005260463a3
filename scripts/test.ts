// npm test [-- part-of-a-path …]: runs the test files, each in its own process, and ends with "N passed, N failed".
// --explore gives random tests new seeds (seed.ts).
// `*.serial.test.ts` run after all others, one at a time: they have a time to keep.
import {
  chmodSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { run } from 'node:test';
import { parallel } from './parallel.ts';
import { provideParts } from './test-parts.ts';
import { collect, render, summary } from './test-reporter.ts';
import type { FileResult } from './test-reporter.ts';

// Tests wait about as long as they compute: three keep two cores busy.
const CONCURRENCY = 3;
const TEST_TIMEOUT_MS = 5 * 60_000; // a test that needs longer says so itself
const FILE_TIMEOUT_MS = 15 * 60_000;
const DURATIONS = 'node_modules/.cache/test-durations.json';
/** Files that take far longer than their size says, in milliseconds: begun last, they would run alone. */
const LONG: Record<string, number> = {
  'packages/client/test/chaos/chaos.test.ts': 25_000,
  'packages/dashboard/test/pages.test.ts': 70_000,
  'packages/server/test/calls/ring.test.ts': 50_000,
  'packages/server/test/clients/generated.test.ts': 90_000,
  'packages/server/test/cluster/lease.test.ts': 40_000,
  'packages/server/test/plans/plans.test.ts': 60_000,
};

/** Hundreds of processes load the same sources: each is compiled once. */
process.env['NODE_COMPILE_CACHE'] ??= resolve('node_modules/.cache/compiled');

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

/**
 * A directory that the files of this run share (packages/server/test/support/shared.ts). Other users must be able to
 * enter it too.
 */
const shared = mkdtempSync(join(tmpdir(), 'parley-tests-'));
chmodSync(shared, 0o711);
process.env['TEST_SHARED'] = shared;
let code = 1;
try {
  code = await main();
} finally {
  rmSync(shared, { recursive: true, force: true });
}
process.exit(code);

async function main(): Promise<number> {
  if (files.length === 0) return end(`No test file matches ${filters.join(' ')}`, []);
  const problem = provideParts(files);
  if (problem) return end(problem, []);

  const isSerial = (file: string) => file.endsWith('.serial.test.ts');
  // The longest files run first, so that all lanes end at about the same time; a file that never ran here counts by
  // its size.
  const took = readDurations();
  const expected = (file: string): number => took[file] ?? LONG[file] ?? statSync(file).size;
  const rest = files.filter((file) => !isSerial(file)).sort((a, b) => expected(b) - expected(a));
  const results = [
    ...(await parallel(rest, CONCURRENCY, runFile)),
    ...(await parallel(files.filter(isSerial), 1, runFile)),
  ];
  for (const { file, ms } of results) took[file] = Math.round(ms);
  writeDurations(took);
  const failed = results.filter((result) => result.failures.length > 0);
  if (failed.length === 0) return end(null, results);
  const names = failed.map((result) => `  ${result.file}`).join('\n');
  return end(`\nFailed in ${failed.length} of ${results.length} files:\n${names}`, results);
}

/** How long the files took when they last ran here. */
function readDurations(): Record<string, number> {
  try {
    return JSON.parse(readFileSync(DURATIONS, 'utf8')) as Record<string, number>;
  } catch {
    return {};
  }
}

function writeDurations(took: Record<string, number>): void {
  mkdirSync(dirname(DURATIONS), { recursive: true });
  writeFileSync(DURATIONS, JSON.stringify(took));
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
