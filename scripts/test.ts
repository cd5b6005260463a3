// npm test [-- part-of-a-path …]: runs the test files and ends with "N passed, N failed".
// --explore gives random tests new seeds (seed.ts). --durations keeps how long the files took (test-durations.json).
// --long runs `*.long.test.ts` instead, --all runs them too; --setup only provides what the tests need.
// `*.serial.*` run after all others, one at a time: they have a time to keep.
import { chmodSync, globSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { run } from 'node:test';
import { makeTemporary } from './test-temporary.ts';
import { provideParts, sources } from './test-parts.ts';
import { collect, render, summary } from './test-reporter.ts';
import type { FileResult } from './test-reporter.ts';
import { createLane } from './test-lane.ts';
import type { Lane } from './test-lane.ts';

// A lane is a service, its database, a test and often a browser: three keep two cores busy, and more make each other slow.
const LANES = 3;
const TEST_TIMEOUT_MS = 5 * 60_000; // a test that needs longer says so itself
const FILE_TIMEOUT_MS = 15 * 60_000;
const DURATIONS = resolve(import.meta.dirname, 'test-durations.json');
/** The name under which the files without servers and processes run, in one process. */
const UNITS = 'unit tests';

/** Hundreds of processes load the same sources: each is compiled once. */
process.env['NODE_COMPILE_CACHE'] ??= resolve('node_modules/.cache/compiled');

const flags = new Set(process.argv.filter((argument) => argument.startsWith('--')));
if (flags.has('--explore')) process.env['TEST_SEED'] ??= 'random';
const filters = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
const isLong = (file: string) => file.endsWith('.long.test.ts');
const isSerial = (file: string) => file.includes('.serial.');
const files = globSync([
  'packages/*/test/**/*.test.ts',
  'bench/test/**/*.test.ts',
  'scripts/test/**/*.test.ts',
])
  .filter((file) => !file.split('/').includes('node_modules'))
  .filter((file) => flags.has('--all') || flags.has('--setup') || isLong(file) === flags.has('--long'))
  .filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)))
  .sort();

/** The temporary directory of all that this run starts. */
const temporary = makeTemporary();
process.env['TMPDIR'] = temporary;
/**
 * A directory that the files of this run share (packages/server/test/support/shared.ts). Other users must be able to
 * enter it too.
 */
const shared = join(temporary, 'shared');
mkdirSync(shared);
chmodSync(shared, 0o711);
process.env['TEST_SHARED'] = shared;
// The services of the lanes end with this process (test-lane.ts).
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
let code = 1;
try {
  code = await main();
} finally {
  rmSync(temporary, { recursive: true, force: true });
}
process.exit(code);

async function main(): Promise<number> {
  if (files.length === 0) return end(`No test file matches ${filters.join(' ')}`, []);
  const problem = provideParts(files);
  if (problem) return end(problem, []);
  if (flags.has('--setup')) return 0;

  const took = readDurations();
  // The longest files run first, so that all lanes end at about the same time; a new file counts by its size.
  const expected = (file: string): number => took[file] ?? (file === UNITS ? 30_000 : statSync(file).size);
  const units = files.filter(isUnit);
  const rest = files.filter((file) => !isSerial(file) && !units.includes(file));
  if (units.length > 0) rest.push(UNITS);
  rest.sort((a, b) => expected(b) - expected(a));
  const serial = files.filter(isSerial);

  const results: FileResult[] = [];
  const lanes = Array.from({ length: LANES }, createLane);
  const work = async (lane: Lane, queue: string[]): Promise<void> => {
    for (let file = queue.shift(); file !== undefined; file = queue.shift())
      results.push(file === UNITS ? await runUnits(units) : await runFile(file, lane));
  };
  try {
    await Promise.all(lanes.map((lane) => work(lane, rest)));
    await work(lanes[0]!, serial);
  } finally {
    await Promise.all(lanes.map((lane) => lane.close()));
  }
  if (flags.has('--durations')) {
    for (const { file, ms } of results) took[file] = Math.round(ms / 100) * 100;
    writeDurations(took);
  }
  const failed = results.filter((result) => result.failures.length > 0);
  if (failed.length === 0) return end(null, results);
  const names = failed.map((result) => `  ${result.file}`).join('\n');
  return end(`\nFailed in ${failed.length} of ${results.length} files:\n${names}`, results);
}

/** Whether the file, with the helpers that it imports, starts nothing and changes nothing that another file may see. */
function isUnit(file: string): boolean {
  return (
    !isSerial(file) &&
    !/node:(net|tls|dgram|https?|http2|child_process|worker_threads|fs)\b|'(pg|ws|playwright-core)'|\bfetch\(|process\.(env\[|on|exit)|LEFT OUT|import\(/.test(
      sources([file]),
    )
  );
}

/** How long the files took when somebody last noted it: on two idle cores, in milliseconds. */
function readDurations(): Record<string, number> {
  return JSON.parse(readFileSync(DURATIONS, 'utf8')) as Record<string, number>;
}

function writeDurations(took: Record<string, number>): void {
  const kept = Object.entries(took).filter(([file]) => file === UNITS || globSync(file).length > 0);
  writeFileSync(DURATIONS, `${JSON.stringify(Object.fromEntries(kept.sort()), null, 2)}\n`);
}

async function runFile(file: string, lane: Lane): Promise<FileResult> {
  const result = await runAs(file, file, await lane.environment(file));
  // What broke the file may have broken the service.
  if (result.failures.length > 0) await lane.close();
  return result;
}

function runUnits(units: string[]): Promise<FileResult> {
  const paths = JSON.stringify(units.map((file) => resolve(file)));
  return runAs(UNITS, resolve(import.meta.dirname, 'test-units.ts'), { TEST_UNITS: paths });
}

async function runAs(name: string, file: string, env: Record<string, string>): Promise<FileResult> {
  const timer = new AbortController();
  const timeout = setTimeout(() => timer.abort(), FILE_TIMEOUT_MS);
  const path = resolve(file);
  const events = run({
    files: [path],
    concurrency: 1,
    timeout: TEST_TIMEOUT_MS,
    signal: timer.signal,
    env: { ...process.env, ...env },
  });
  const result = { ...(await collect(path, events)), file: name };
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
