// The runner decides whether anything else here may be called green, so it is shown to turn red.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { test } from 'node:test';

const IMPORT = "import { before, describe, it, test } from 'node:test';\n";

type Outcome = { code: number | null; lines: string[] };

/** Runs the runner in a throw-away workspace that holds these files. */
async function runIn(
  files: Record<string, string>,
  args: string[] = [],
  env: NodeJS.ProcessEnv = {},
): Promise<Outcome> {
  const root = mkdtempSync(join(tmpdir(), 'parley-runner-'));
  try {
    for (const [path, text] of Object.entries({ 'package.json': '{"type":"module"}', ...files })) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    const { NODE_TEST_CONTEXT: _context, TEST_SEED: _seed, ...outer } = process.env;
    const child = spawn(process.execPath, [resolve('scripts/test.ts'), ...args], {
      cwd: root,
      env: { ...outer, ...env },
    });
    let output = '';
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (output += chunk));
    const code = await new Promise<number | null>((done) => child.on('close', done));
    return { code, lines: output.trimEnd().split('\n') };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

test('counts leaf tests, not suites or tests that hold tests', async () => {
  const { code, lines } = await runIn({
    'packages/a/test/deep/one.test.ts': `${IMPORT}
      test('1', () => {});
      describe('suite', () => { it('2', () => {}); describe('inner', () => { it('3', () => {}); }); });
      test('parent', async (t) => { await t.test('4', () => {}); await t.test('5', () => {}); });
      test('6', () => {});`,
    'bench/test/two.test.ts': `${IMPORT} test('7', () => {});`,
  });
  assert.equal(lines.at(-1), '7 passed, 0 failed');
  assert.equal(code, 0);
});

test('the temporary directory of a run is writable for everybody, and gone after it', async () => {
  const { code, lines } = await runIn({
    'packages/a/test/one.test.ts': `${IMPORT}
      import { statSync, writeFileSync } from 'node:fs';
      import { tmpdir } from 'node:os';
      test('1', () => {
        writeFileSync(tmpdir() + '/left', '');
        console.log('!!! ' + (statSync(tmpdir()).mode & 0o1777).toString(8) + ' ' + tmpdir());
      });`,
  });
  const [, mode, path = ''] = lines.at(-2)?.split(' ') ?? [];
  assert.deepEqual([code, mode, existsSync(dirname(path)), existsSync(path)], [0, '1777', true, false]);
});

test('what a file says loudly is said at the end, though all of its tests pass', async () => {
  const { code, lines } = await runIn({
    'packages/a/test/one.test.ts': `${IMPORT} console.log('hm'); console.log('!!! NOT THERE: a server.'); test('1', () => {});`,
    'packages/a/test/two.test.ts': `${IMPORT} test('2', () => {});`,
  });
  assert.deepEqual(lines.slice(-2), ['!!! NOT THERE: a server.', '2 passed, 0 failed']);
  assert.doesNotMatch(lines.join('\n'), /hm/);
  assert.equal(code, 0);
});

test('what was left out is counted in the last line', async () => {
  const { code, lines } = await runIn({
    'packages/a/test/one.test.ts': `${IMPORT} console.log('!!! LEFT OUT: ONE: why.\\n!!! and this'); test('1', () => {});`,
    'packages/a/test/two.test.ts': `${IMPORT} console.log('!!! LEFT OUT: TWO: why.'); test('2', () => {});`,
  });
  assert.equal(lines.at(-1), '2 passed, 0 failed, 2 left out');
  assert.equal(code, 0);
});

test('a failing test is named with its error, once, and its siblings still count', async () => {
  const { code, lines } = await runIn({
    'packages/a/test/one.test.ts': `${IMPORT}
      describe('suite', () => { it('good', () => {}); it('bad', () => { console.log('said'); throw new Error('boom'); }); });`,
  });
  assert.equal(lines.at(-1), '1 passed, 1 failed');
  assert.notEqual(code, 0);
  assert.match(lines.join('\n'), /failed: bad\n.*one\.test\.ts:\d+\n\s+Error: boom/);
  assert.match(lines.join('\n'), /output:\n\s+said/);
});

for (const [what, text] of Object.entries({
  'that throws while loading': `${IMPORT} test('x', () => {}); throw new Error('crash');`,
  'that throws after its tests': `${IMPORT} test('x', () => { setTimeout(() => { throw new Error('late'); }, 50); });`,
  'with a syntax error': 'const = 1;',
  'that exits with 0 in the middle': `${IMPORT} test('x', () => {}); test('y', () => process.exit(0)); test('z', () => {});`,
  'without a test': 'export {};',
  'with an empty suite': `${IMPORT} describe('nothing', () => {});`,
  'with a failing hook': `${IMPORT} describe('s', () => { before(() => { throw new Error('hook'); }); it('x', () => {}); });`,
  'with a test that times out': `${IMPORT} test('x', { timeout: 50 }, () => new Promise((r) => setTimeout(r, 200)));`,
})) {
  test(`a file ${what} is a failure`, async () => {
    const { code, lines } = await runIn({ 'packages/a/test/one.test.ts': text });
    assert.match(lines.at(-1) ?? '', /^[01] passed, [12] failed$/);
    assert.notEqual(code, 0);
  });
}

test('an argument picks the files whose path holds it; none is a failure', async () => {
  const files = {
    'packages/a/test/one.test.ts': `${IMPORT} test('x', () => {});`,
    'packages/b/test/two.test.ts': 'throw new Error("not to be run");',
  };
  assert.equal((await runIn(files, ['a/test'])).lines.at(-1), '1 passed, 0 failed');
  const none = await runIn(files, ['nowhere']);
  assert.equal(none.lines.at(-1), '0 passed, 1 failed');
  assert.notEqual(none.code, 0);
});

test('a random test that fails shows its seed: 1, the one that is given, or with --explore another each time', async () => {
  const { href } = new URL('../seed.ts', import.meta.url);
  const text = `import { seed } from ${JSON.stringify(href)}; ${IMPORT} test('x', () => { seed('it'); throw new Error('no'); });`;
  const seedOf = async (args: string[], env = {}): Promise<string | undefined> => {
    const { lines } = await runIn({ 'packages/a/test/one.test.ts': text }, args, env);
    return /it: repeat with TEST_SEED=(\d+)/.exec(lines.join('\n'))?.[1];
  };
  assert.equal(await seedOf([]), '1');
  assert.equal(await seedOf([], { TEST_SEED: '77' }), '77');
  const explored = await seedOf(['--explore']);
  assert.match(explored ?? '', /^\d+$/);
  assert.notEqual(explored, '1');
});

test('long files run with --long, which leaves out the others, and with --all', async () => {
  const files = {
    'packages/a/test/one.test.ts': `${IMPORT} test('x', () => {});`,
    'packages/a/test/two.long.test.ts': `${IMPORT} test('x', () => {}); test('y', () => {});`,
  };
  assert.equal((await runIn(files)).lines.at(-1), '1 passed, 0 failed');
  assert.equal((await runIn(files, ['--long'])).lines.at(-1), '2 passed, 0 failed');
  assert.equal((await runIn(files, ['--all'])).lines.at(-1), '3 passed, 0 failed');
});

test('files that start nothing share a process, and one of them without a test is named', async () => {
  const note = `${IMPORT} test('x', () => console.log('!!! ' + process.pid));`;
  const files = {
    'packages/a/test/one.test.ts': note,
    'packages/a/test/two.test.ts': note,
    'packages/a/test/three.test.ts': `import 'node:net'; ${note}`,
  };
  const { lines } = await runIn(files);
  assert.equal(lines.at(-1), '3 passed, 0 failed');
  assert.equal(new Set(lines.filter((line) => line.startsWith('!!! '))).size, 2);
  const empty = await runIn({ ...files, 'packages/a/test/four.test.ts': 'export {};' });
  assert.match(empty.lines.join('\n'), /failed: \S+four\.test\.ts\n\s+ran no tests/);
  assert.equal(empty.lines.at(-1), '3 passed, 1 failed');
});

test('serial files run after the others, one at a time', async () => {
  const note = (text: string) => `appendFileSync('order', ${JSON.stringify(text)});`;
  const file = (name: string) => `import { appendFileSync } from 'node:fs'; ${IMPORT}
    test('x', async () => { ${note(`${name}<`)} await new Promise((r) => setTimeout(r, 100)); ${note(`>${name} `)} });`;
  const { lines } = await runIn({
    'packages/a/test/a.serial.test.ts': file('a'),
    'packages/a/test/b.serial.test.ts': file('b'),
    'packages/a/test/z.test.ts': file('z'),
    'packages/b/test/c.serial.test.ts': `import { readFileSync } from 'node:fs'; ${IMPORT}
      test('order', () => { if (readFileSync('order', 'utf8') !== 'z<>z a<>a b<>b ') throw new Error('order'); });`,
  });
  assert.equal(lines.at(-1), '4 passed, 0 failed');
});

test('a part that a test helper names and the machine lacks is named with the command that brings it', async () => {
  const { code, lines } = await runIn(
    {
      'packages/a/test/one.test.ts': `import './support/bus.ts'; ${IMPORT} test('x', () => {});`,
      'packages/a/test/support/bus.ts': `export const program = '${['redis', 'server'].join('-')}';`,
    },
    [],
    { PATH: '/nowhere' }, // neither the part nor apt-get
  );
  assert.match(lines[0] ?? '', /need Redis.*apt-get install -y --no-install-recommends redis\S+$/);
  assert.equal(lines.at(-1), '0 passed, 1 failed');
  assert.notEqual(code, 0);
});
