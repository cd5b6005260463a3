import assert from 'node:assert/strict';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { cached } from '../../../../scripts/test-cache.ts';
import { mediaPort } from '../../../server/test/calls/media-service.ts';
import * as npmStart from '../../../server/test/start/npm-start.ts';
import type { Started } from '../../../server/test/start/npm-start.ts';
import { testExamples } from './examples.ts';
import { bundle } from './bundlers.ts';
import { installed, project, react19, run, shell, tarballs } from './tarballs.ts';
import type { Tarballs } from './tarballs.ts';

/**
 * The packages as somebody gets them: `npm run build` makes them, npm installs them into empty projects, and everything below runs from there.
 * The service is the one that was installed, too.
 */

const minutes = (n: number) => ({ timeout: n * 60_000 });
const home = await mkdtemp(join(tmpdir(), 'parley-packages-'));
const programs = join(import.meta.dirname, 'programs');
const hosts = cached('package-hosts/1');
if (hosts === undefined)
  console.log(
    '!!! LEFT OUT: THE PACKAGES UNDER OTHER RUNTIMES AND BUNDLERS: npm test fetches them where it can.',
  );
const host = (path: string): string => join(hosts!, 'node_modules', path);

let packages: Tarballs;
let empty: string;
let started: Started;
const service = { url: '', secretKey: '' };

/** In the directory that npm made; its data comes into `./data`. */
async function start(command: string[]): Promise<Started> {
  const one = npmStart.run([...command, 'start'], {
    cwd: empty,
    env: {
      ...shell,
      PORT: '0',
      CHAT_MEDIA_WORKERS: '1',
      CHAT_MEDIA_PORT: String(await mediaPort(1)),
      // Nothing answers there: no question about a name leaves the machine.
      CHAT_DNS_SERVERS: '127.0.0.1:9',
    },
  });
  started = one;
  service.url = await one.ready;
  return one;
}

before(async () => {
  packages = await tarballs();
  empty = await project(join(home, 'server'), [packages.server, packages.worker]);
  const one = await start(['npx', 'parley']);
  await npmStart.until(() => /secret key +\S+\n/.test(one.stdout()));
  service.secretKey = /secret key +(\S+)/.exec(one.stdout())![1]!;
}, minutes(14));

after(async () => {
  if (started?.process.exitCode === null) {
    process.kill(-started.process.pid!, 'SIGKILL');
    await started.exited;
  }
  await rm(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
});

const parley = async (path: string, body?: unknown): Promise<any> => {
  const answer = await fetch(`${service.url}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${service.secretKey}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  assert.ok(answer.ok, `${path}: ${answer.status} ${await answer.clone().text()}`);
  return answer.json();
};

describe('the server', () => {
  it('serves from its package what the checkout serves: API, pages, reference, calls', async () => {
    const ready = async (): Promise<any> => (await fetch(`${service.url}/readyz`)).json();
    await npmStart.until(async () => (await ready()).media === 'ready');
    const conversation = await parley('/v1/conversations', { type: 'direct', members: ['alice', 'bob'] });
    await parley(`/v1/conversations/${conversation.id}/messages`, { senderId: 'alice', text: 'Hello' });
    const { data } = await parley('/v1/conversations?userId=bob');
    assert.equal(data[0].unreadCount, 1);
    const page = async (path: string): Promise<string> => {
      const answer = await fetch(`${service.url}${path}`);
      assert.equal(answer.status, 200, path);
      return answer.text();
    };
    assert.match(await page('/'), /<html/);
    assert.match(await page('/docs'), /User tokens/);
    const script = /\/playground\/main-[^"]*\.js/.exec(await page('/'))![0];
    const chunks = [...(await page(script)).matchAll(/"\.\/([\w-]+\.js)"/g)].map(
      ([, name]) => `/playground/${name}`,
    );
    const scripts = await Promise.all([...new Set(chunks)].map(page));
    assert.ok(
      scripts.some((text) => text.includes('WebSocket')),
      'the client is among what the script loads',
    );
    const asset = /\/dashboard\/assets\/main-[^"]*\.js/.exec(await page('/dashboard'))![0];
    assert.ok((await page(asset)).length > 10_000);
  });

  it('needs nothing to be built: neither esbuild nor the worker’s sources are asked for', async () => {
    const names = await installed(empty);
    for (const absent of ['esbuild', 'typescript', 'mediasoup', 'node'])
      assert.ok(!names.includes(absent), `${absent} is installed`);
    const { dependencies } = JSON.parse(await readFile(join(empty, 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>;
    };
    assert.deepEqual(Object.keys(dependencies).length, 2);
  });

  it('brings all commands, on the data that the service uses', async () => {
    const env = { CHAT_LOG_LEVEL: 'error' };
    assert.match(await run('npx', ['parley', 'start', '--help'], empty, env), /CHAT_DATA_DIR/);
    assert.match(await run('npx', ['parley', 'env', 'list'], empty, env), /env_[0-9a-z]{26}/);
  });

  it('says which Node it needs', { skip: hosts === undefined }, async () => {
    const program = join(empty, 'node_modules/@parley/server/src/bin.js');
    await assert.rejects(
      run(host('node20/bin/node'), [program, 'start'], empty),
      /needs Node 24\.7 or newer/,
    );
  });
});

describe('the libraries', { skip: hosts === undefined }, () => {
  let folder: string;
  before(async () => {
    folder = await project(join(home, 'libraries'), [packages.client, packages.sdk]);
    assert.deepEqual(
      await installed(folder),
      ['@parley/client', '@parley/server-sdk'],
      'no dependency comes along',
    );
    await cp(programs, folder, { recursive: true });
  }, minutes(5));

  it('publint and arethetypeswrong find nothing', minutes(5), async () => {
    const { publint } = (await import(host('publint/src/index-node.js'))) as {
      publint(options: object): Promise<{ messages: unknown[] }>;
    };
    for (const tarball of packages.all) {
      const { buffer } = new Uint8Array(await readFile(tarball));
      const { messages } = await publint({ pack: { tarball: buffer }, strict: true });
      assert.deepEqual(messages, [], basename(tarball));
    }
    // ES modules are all that there is; types are looked for as Node and bundlers do.
    const attw = host('@arethetypeswrong/cli/dist/index.js');
    for (const tarball of [packages.client, packages.sdk, packages.react])
      await run(
        process.execPath,
        // Stylesheets have no types.
        [
          attw,
          tarball,
          '--profile',
          'esm-only',
          '--no-emoji',
          '--no-color',
          '--exclude-entrypoints',
          'styles.css',
          'devtools.css',
          'tokens.css',
        ],
        folder,
      );
  });

  for (const [resolution, module] of [
    ['nodenext', 'nodenext'],
    ['bundler', 'esnext'],
  ] as const)
    it(`types: a strict program, with module resolution ${resolution}`, minutes(5), async () => {
      await writeFile(join(folder, 'types.ts'), await readFile(join(programs, 'types.ts.txt')));
      const options = ['--noEmit', '--strict', '--target', 'es2022', '--lib', 'es2022,dom,dom.iterable'];
      const tsc = [
        host('typescript/lib/tsc.js'),
        ...options,
        '--module',
        module,
        '--moduleResolution',
        resolution,
      ];
      await run(process.execPath, [...tsc, 'types.ts'], folder);
    });

  const runtimes: [string, () => string, string[]][] = [
    ['node20', () => host('node20/bin/node'), []],
    ['node22', () => host('node22/bin/node'), []],
    ['node24', () => process.execPath, []],
    ['bun', () => host('.bin/bun'), []],
    ['deno', () => host('.bin/deno'), ['run', '-A', '--quiet', '--node-modules-dir=manual']],
  ];
  for (const [name, program, options] of runtimes)
    it(`${name}: a server and two of its users`, minutes(5), async () => {
      // Node 20 has no WebSocket of its own: it is passed in.
      if (name === 'node20')
        await run('npm', ['install', '--prefer-offline', '--no-save', 'ws@8.22.2'], folder);
      const said = await run(
        program(),
        [...options, 'chat.mjs', service.url, service.secretKey, name],
        folder,
      );
      assert.deepEqual(JSON.parse(said), {
        received: `hello from ${name}`,
        calls: 'calls_not_installed',
        advice: true,
        wrong: 'not_found',
        where: true,
      });
    });

  for (const name of ['vite', 'webpack', 'metro', 'metro without exports'] as const)
    it(`${name}: a bundle that connects and sends`, minutes(5), async () => {
      const file = await bundle(name, folder, hosts!);
      const user = `user-${name.replaceAll(' ', '-')}`;
      const { token } = await parley('/v1/tokens', { userId: user });
      const given = JSON.stringify({ url: service.url, token, to: 'bob', text: `sent by ${name}` });
      const said = await run(process.execPath, [join(programs, 'run-bundle.mjs'), file, given], folder);
      assert.deepEqual(JSON.parse(said), { status: 'sent', kept: true, indexedDb: 'function' });
    });
});

describe('the kit', () => {
  for (const [version, react] of [
    [18, ['react@18.3.1', 'react-dom@18.3.1']],
    [19, react19],
  ] as const)
    it(`with React ${version}: renders on a server, and has its stylesheets`, minutes(5), async () => {
      const folder = await project(join(home, `react-${version}`), [
        packages.client,
        packages.react,
        ...react,
      ]);
      assert.deepEqual(
        (await installed(folder)).filter((name) => name.startsWith('@')),
        ['@parley/client', '@parley/react'],
      );
      await cp(join(programs, 'kit.mjs'), join(folder, 'kit.mjs'));
      const said = JSON.parse(await run(process.execPath, ['kit.mjs'], folder));
      assert.match(said.html, /^<div class="parley-chat"/);
      assert.deepEqual(said, {
        html: said.html,
        version: String(version),
        calls: true,
        devtools: true,
        emoji: true,
        styles: true,
        tokens: true,
      });
    });
});

describe('the examples', () => {
  testExamples({ home, service, packages: () => packages, parley, hosts });
});

describe('the end of the server', () => {
  it('npx that is ended ends the service, which says goodbye', minutes(5), async () => {
    started.process.kill('SIGTERM');
    await started.exited;
    assert.match(started.output(), /"msg":"stopped"/);
  });

  it('its own program ends with 0 at SIGTERM, and finds its data again', minutes(5), async () => {
    const one = await start([join(empty, 'node_modules/.bin/parley')]);
    const { data } = await parley('/v1/conversations?userId=bob');
    assert.ok(data.length > 0);
    assert.doesNotMatch(one.stdout(), /secret key/);
    one.process.kill('SIGTERM');
    assert.equal(await one.exited, 0, one.output());
  });
});
