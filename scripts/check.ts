// npm run check [-- step …]: everything that can be checked about the code without running it.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { delimiter, dirname, resolve } from 'node:path';
import { parallel } from './parallel.ts';

type Step = { name: string; commands: string[][] };

const CONCURRENCY = 2;
const GENERATE = 'packages/protocol/src/generate/main.ts';

const hasSources = (folder: string) =>
  globSync(`${folder}/**/*.{ts,tsx}`).some((file) => !file.includes('node_modules'));
const cruised = ['packages', 'bench', 'scripts'].filter((folder) => existsSync(folder));

const steps: Step[] = [
  { name: 'lint', commands: [['eslint', '--max-warnings=0', '.']] },
  {
    name: 'types',
    commands: ['tsconfig.json', ...globSync('packages/*/tsconfig.json').sort()]
      .filter((config) => config === 'tsconfig.json' || hasSources(dirname(config)))
      .map((config) => ['tsc', '--noEmit', '-p', config]),
  },
  { name: 'format', commands: [['prettier', '--check', '--log-level=warn', '.']] },
  { name: 'imports', commands: [['depcruise', '--output-type=err', ...cruised]] },
  { name: 'dead-code', commands: [['knip', '--no-progress', '--no-config-hints']] },
  {
    name: 'generated',
    commands: [GENERATE, 'scripts/settings-table.ts', 'scripts/command-line.ts']
      .filter((script) => existsSync(script))
      .map((script) => ['node', script, '--check']),
  },
  { name: 'citations', commands: [['node', 'scripts/citations.ts']] },
  { name: 'statements', commands: [['node', 'scripts/statements.ts']] },
  {
    name: 'client-size',
    commands: existsSync('packages/client/src/index.ts') ? [['node', 'scripts/client-size.ts']] : [],
  },
  { name: 'dashboard-size', commands: [['node', 'scripts/dashboard-size.ts']] },
];

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !steps.some((step) => step.name === name));
if (unknown.length > 0) {
  console.error(`No step ${unknown.join(', ')}. Steps: ${steps.map((step) => step.name).join(', ')}`);
  process.exit(2);
}
// The type check covers bench too, so its packages are installed.
if (spawnSync(process.execPath, ['bench/install.ts'], { stdio: 'inherit' }).status !== 0) process.exit(1);
const chosen = steps.filter((step) => wanted.length === 0 || wanted.includes(step.name));
const passed = await parallel(chosen, CONCURRENCY, runStep);
process.exit(passed.every(Boolean) ? 0 : 1);

async function runStep(step: Step): Promise<boolean> {
  const start = performance.now();
  const runs = [];
  for (const command of step.commands) runs.push(await runCommand(command));
  const failed = runs.filter((run) => !run.ok);
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  console.log(`${failed.length === 0 ? 'ok  ' : 'FAIL'}  ${step.name}  ${seconds} s`);
  for (const run of failed) console.log(run.output.trimEnd());
  return failed.length === 0;
}

function runCommand([program = '', ...args]: string[]): Promise<{ ok: boolean; output: string }> {
  const PATH = [resolve('node_modules/.bin'), process.env['PATH']].join(delimiter);
  return new Promise((done) => {
    let output = '';
    const child = spawn(program, args, { env: { ...process.env, PATH }, stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (output += chunk));
    child.on('error', (error) => done({ ok: false, output: `${program}: ${error.message}` }));
    child.on('close', (code) => done({ ok: code === 0, output }));
  });
}
