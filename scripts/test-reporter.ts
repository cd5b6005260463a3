// Turns the events of one test file into a result that can be trusted: only leaf tests are counted, and a file that
// crashed, hung, ended early or ran nothing has failed, whatever its tests reported before.
import { inspect } from 'node:util';
import type { EventData } from 'node:test';

export type TestEvent = { type: string; data: unknown };
export type Failure = { name: string; error: string };
export type FileResult = {
  file: string;
  ms: number;
  passed: number;
  failures: Failure[];
  skipped: string[];
  output: string;
};

const MAX_OUTPUT = 64 * 1024;

export async function collect(file: string, events: AsyncIterable<TestEvent>): Promise<FileResult> {
  const result: FileResult = { file, ms: 0, passed: 0, failures: [], skipped: [], output: '' };
  const children: number[] = []; // how many tests were reported at each depth below the one still open
  let finished = false;

  for await (const { type, data } of events) {
    if (type === 'test:stdout' || type === 'test:stderr') {
      result.output = (result.output + (data as EventData.TestStdout).message).slice(-MAX_OUTPUT);
    } else if (type === 'test:summary') {
      const summary = data as EventData.TestSummary;
      if (summary.file) finished = true;
      else result.ms = summary.duration_ms;
    } else if (type === 'test:pass') {
      const test = data as EventData.TestPass;
      const hasTests = closeDepth(children, test.nesting);
      const isSuite = test.details.type === 'suite';
      if (skipped(test)) result.skipped.push(test.name);
      else if (!hasTests && !isSuite && test.name !== file) result.passed += 1;
      // Of the files that run in one process, each is a suite.
      else if (!hasTests && isSuite && test.name.endsWith('.test.ts'))
        result.failures.push({ name: test.name, error: 'ran no tests' });
    } else if (type === 'test:fail') {
      const test = data as EventData.TestFail;
      closeDepth(children, test.nesting);
      const error = test.details.error as Error & { failureType?: string };
      if (error.failureType === 'subtestsFailed') continue;
      const name = test.name === file ? 'the file as a whole' : test.name;
      result.failures.push({ name, error: describe(error, test) });
    }
  }

  if (result.failures.length === 0) {
    if (!finished) result.failures.push({ name: 'the file as a whole', error: 'ended before its tests did' });
    else if (result.passed === 0 && result.skipped.length === 0) {
      result.failures.push({ name: 'the file as a whole', error: 'ran no tests' });
    }
  }
  return result;
}

/** Records a test reported at `depth`, and returns whether tests inside it were reported before it. */
function closeDepth(children: number[], depth: number): boolean {
  const inside = children[depth + 1] ?? 0;
  children.length = depth + 1;
  children[depth] = (children[depth] ?? 0) + 1;
  return inside > 0;
}

function skipped(test: EventData.TestPass): boolean {
  return (test.skip ?? test.todo ?? false) !== false;
}

function describe(error: Error & { failureType?: string }, test: EventData.TestFail): string {
  if (error.failureType === 'testAborted') return 'did not end in time and was stopped';
  const where = test.file && test.line ? `at ${test.file}:${test.line}\n` : '';
  return (
    where + (typeof error.cause === 'string' ? error.cause : inspect(error.cause ?? error, { depth: 6 }))
  );
}

/** One line for the file, then each failure with its error, and what the file printed if anything failed. */
export function render(result: FileResult): string {
  const failed = result.failures.length;
  const counts = [`${result.passed} passed`];
  if (failed > 0) counts.push(`${failed} failed`);
  if (result.skipped.length > 0) counts.push(`${result.skipped.length} SKIPPED`);
  const seconds = (result.ms / 1000).toFixed(1);
  const lines = [`${failed > 0 ? 'FAIL' : 'ok  '}  ${result.file}  ${counts.join(', ')}  ${seconds} s`];
  for (const name of result.skipped) lines.push(`  skipped: ${name}`);
  for (const { name, error } of result.failures) lines.push(`  failed: ${name}`, indent(error));
  if (failed > 0 && result.output.trim() !== '') lines.push('  output:', indent(result.output.trimEnd()));
  return lines.join('\n');
}

/** What a file says in lines that begin with `!!!` must be seen even if all of its tests pass. */
function loud({ output }: FileResult): string[] {
  return output.split('\n').filter((line) => line.startsWith('!!!'));
}

function indent(text: string): string {
  return text.replace(/^/gm, '    ');
}

/** The loud lines of all files, then how many tests passed and failed, and how much was left out (`!!! LEFT OUT: …`). */
export function summary(results: FileResult[]): string {
  const lines = results.flatMap(loud);
  const left = lines.filter((line) => line.startsWith('!!! LEFT OUT')).length;
  const passed = results.reduce((sum, result) => sum + result.passed, 0);
  const failed = results.reduce((sum, result) => sum + result.failures.length, 0);
  const counts = `${passed} passed, ${failed} failed${left > 0 ? `, ${left} left out` : ''}`;
  return [...lines, counts].join('\n');
}
