import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { cached, onPath } from '../../../../scripts/test-cache.ts';
import { environments } from '../support/service.ts';
import { setUp, useService } from '../support/use.ts';

/**
 * Clients that others' programs generate from openapi.json: they are generated without a warning, compiled, and hold a whole conversation. Where
 * a generator could not be fetched (scripts/test-tools.ts), it is left out, loudly.
 */

const { service } = useService();
const document = join(import.meta.dirname, '../../../protocol/generated/openapi.json');
const programs = join(import.meta.dirname, 'programs');
const exec = promisify(execFile);
const home = await mkdtemp(join(tmpdir(), 'parley-clients-'));
after(() => rm(home, { recursive: true }));

/** Runs a program, and fails with all that it said. */
async function run(
  program: string,
  args: string[],
  cwd: string,
  env: Record<string, string> = {},
): Promise<string> {
  try {
    const options = { cwd, env: { ...process.env, ...env }, maxBuffer: 16 * 1024 * 1024 };
    return (await exec(program, args, options)).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`${program} ${args.join(' ')}\n${stdout ?? ''}\n${stderr ?? ''}`, { cause: error });
  }
}

function leftOut(what: string, why: string): void {
  console.log(`!!! LEFT OUT: THE CLIENT OF ${what.toUpperCase()}: ${why}; npm test fetches it where it can.`);
}

const types = [
  'conversation.created',
  'message.new',
  'message.new',
  'message.updated',
  'message.deleted',
] as const;
const records = ['ConversationCreatedEvent', 'MessageNewEvent', 'MessageNewEvent'];
const expected = {
  refused: 'forbidden',
  version: 2,
  messages: [
    ['Tombstone', null],
    ['Message', 'edited'],
  ],
  events: [...records, 'MessageUpdatedEvent', 'MessageDeletedEvent'].map((name, i) => [name, types[i]]),
};

let argument: string[];
setUp(() => {
  argument = [service.url, environments.dev.secretKey];
});

it('the service serves the document that clients are generated from', async () => {
  const served: unknown = await (await fetch(`${service.url}/openapi.json`)).json();
  assert.deepEqual(served, JSON.parse(await readFile(document, 'utf8')));
});

const python = cached('openapi-python-client/0.29.1');
if (python === undefined) leftOut('openapi-python-client', 'it is not in the cache');
else
  it('openapi-python-client: generated without a warning, a whole conversation', async () => {
    const cwd = join(home, 'python');
    await mkdir(cwd);
    // It knows no lines of JSON; as bytes they can be read.
    const settings = {
      post_hooks: [],
      content_type_overrides: { 'application/jsonl': 'application/octet-stream' },
    };
    await writeFile(join(cwd, 'settings.json'), JSON.stringify(settings));
    const interpreter = join(python, 'bin/python');
    await run(
      interpreter,
      [
        '-m',
        'openapi_python_client',
        'generate',
        '--path',
        document,
        '--config',
        'settings.json',
        '--meta',
        'none',
        '--output-path',
        'parley',
        '--fail-on-warning',
      ],
      cwd,
    );
    await run(interpreter, ['-m', 'compileall', '-q', 'parley'], cwd);
    const said = await run(interpreter, [join(programs, 'conversation.py'), ...argument], cwd, {
      PYTHONPATH: cwd,
    });
    assert.deepEqual(JSON.parse(said), expected);
  });

const openapiGenerator = cached('openapi-generator/7.14.0');
const lacking = ['java', 'go'].find((program) => !onPath(program));
if (openapiGenerator === undefined || lacking !== undefined)
  leftOut('openapi-generator', lacking === undefined ? 'it is not in the cache' : `there is no ${lacking}`);
else
  it(
    'openapi-generator for Go: generated, compiled, a whole conversation',
    { timeout: 12 * 60_000 },
    async () => {
      const cwd = join(home, 'go');
      await mkdir(cwd);
      const options = 'packageName=parley,withGoMod=false,disallowAdditionalPropertiesIfNotPresent=false';
      await run(
        'java',
        [
          '-jar',
          join(openapiGenerator, 'openapi-generator-cli-7.14.0.jar'),
          'generate',
          '-g',
          'go',
          '-i',
          document,
          '-o',
          'parley',
          '--additional-properties',
          options,
          '--global-property',
          'apiTests=false,modelTests=false,apiDocs=false,modelDocs=false',
        ],
        cwd,
      );
      await writeFile(join(cwd, 'go.mod'), 'module conversation\n\ngo 1.18\n');
      await cp(join(programs, 'conversation.go'), join(cwd, 'main.go'));
      // The generated code needs nothing but the standard library, so nothing is fetched.
      const local = { GOPROXY: 'off', GOTOOLCHAIN: 'local', GOFLAGS: '-mod=mod', GOTELEMETRY: 'off' };
      await run('go', ['build', '-gcflags', 'conversation/...=-N -l', '-o', 'converse', '.'], cwd, local);
      assert.deepEqual(JSON.parse(await run('./converse', argument, cwd)), expected);
    },
  );

const heyApi = cached('hey-api/0.95.0');
if (heyApi === undefined) leftOut('hey-api', 'it is not in the cache');
else
  it('hey-api: generated, type-checked in strict mode, a whole conversation', async () => {
    const cwd = join(home, 'typescript');
    await mkdir(cwd);
    const modules = join(heyApi, 'node_modules');
    const generator = join(modules, '@hey-api/openapi-ts/bin/run.js');
    await run(process.execPath, [generator, '-i', document, '-o', 'parley', '--no-log-file'], cwd);
    await cp(join(programs, 'conversation.ts.txt'), join(cwd, 'conversation.ts'));
    const options = ['--noEmit', '--strict', '--noUncheckedIndexedAccess', '--target', 'es2023'];
    const resolution = [
      '--module',
      'esnext',
      '--moduleResolution',
      'bundler',
      '--lib',
      'es2023,dom,dom.iterable',
    ];
    const tsc = join(modules, 'typescript/lib/tsc.js');
    await run(process.execPath, [tsc, ...options, ...resolution, 'conversation.ts'], cwd);
    const outfile = join(cwd, 'conversation.mjs');
    await build({ entryPoints: [join(cwd, 'conversation.ts')], bundle: true, format: 'esm', outfile });
    const { converse } = (await import(pathToFileURL(outfile).href)) as {
      converse(url: string, secretKey: string): Promise<unknown>;
    };
    const events = types.map((type) => [true, type]);
    assert.deepEqual(await converse(service.url, environments.dev.secretKey), { ...expected, events });
  });
