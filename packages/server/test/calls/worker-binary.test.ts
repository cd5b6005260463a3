import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeEach, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { packWorker } from '../../src/platform/media/package.ts';
import { findWorkerBinary, workerPackage } from '../../src/platform/media/worker-binary.ts';
import { createScene } from '../support/scene.ts';
import { startService } from '../support/service.ts';
import { use } from '../support/use.ts';
import { mediaPort, mediaReady } from './media-service.ts';

/** Where the media worker comes from; its releases are on a server of this test. */

const run = promisify(execFile);

const releases = use(
  async () => {
    const asked: string[] = [];
    const held: (() => void)[] = [];
    const made = {
      url: '',
      asked,
      archive: Buffer.alloc(0) as Buffer,
      holding: false,
      release: () => undefined as void,
    };
    const server = createServer((request, response) => {
      asked.push(request.url!);
      const answer = () => void response.end(made.archive);
      if (made.holding) held.push(answer);
      else answer();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    made.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mediasoup`;
    made.release = () => {
      made.holding = false;
      for (const answer of held.splice(0)) answer();
    };
    return Object.assign(made, { close: () => server.close() });
  },
  (made) => made.close(),
);
const folder = use(
  async () => ({ path: await mkdtemp(join(tmpdir(), 'parley-worker-')) }),
  ({ path }) => rm(path, { recursive: true, force: true }),
);
let caches = 0;
const emptyCache = (): string => join(folder.path, `cache-${++caches}`);
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** An archive with this program as the worker. */
async function pack(program: string): Promise<Buffer> {
  const archive = join(folder.path, 'worker.tgz');
  await run('tar', ['-czf', archive, '-C', dirname(program), 'mediasoup-worker']);
  return readFile(archive);
}

async function write(name: string, text: string): Promise<string> {
  const path = join(folder.path, name);
  await writeFile(path, text);
  await chmod(path, 0o755);
  return path;
}

beforeEach(() => releases.asked.splice(0));

it('is downloaded where its checksum is the one to trust, once; any other archive is refused, and it is built', async () => {
  releases.archive = await pack(await write('mediasoup-worker', '#!/bin/sh\necho downloaded\n'));
  // Stands for the recipe, which takes minutes.
  const script = await write(
    'recipe.sh',
    `[ "$1" = --key ] && { echo key; exit; }
version=$(sed -n 's/.*"version": "\\(.*\\)".*/\\1/p' "$3/package.json")
echo compiling
printf '#!/bin/sh\\necho built\\n' > "$2"; chmod +x "$2"; echo "{\\"mediasoup\\":\\"$version\\"}" > "$2.json"
`,
  );
  const said: string[] = [];
  const find = (cache: string, checksum: string) =>
    findWorkerBinary({
      env: { XDG_CACHE_HOME: cache },
      sha256: checksum,
      releases: releases.url,
      recipe: { script, packages: '' },
      progress: ({ text, leftMs }) => {
        assert.ok(leftMs > 0);
        said.push(text);
      },
    });
  const cache = emptyCache();
  for (let times = 0; times < 2; times++) {
    const { stdout } = await run(await find(cache, sha256(releases.archive)));
    assert.equal(stdout, 'downloaded\n');
  }
  assert.equal(releases.asked.length, 1, 'the second time it is in the cache');
  assert.match(releases.asked[0]!, /^\/mediasoup\/\d+\.\d+\.\d+\/mediasoup-worker-[\w.-]+\.tgz$/);
  assert.deepEqual(said.splice(0), ['downloading the media worker']);

  const { stdout } = await run(await find(emptyCache(), 'f'.repeat(64)));
  assert.equal(stdout, 'built\n');
  assert.match(said[1]!, new RegExp(`the download failed .*${sha256(releases.archive)}.*; building instead`));
  assert.equal(said.at(-1), 'building the media worker: compiling');
});

it('comes with the package for this platform, and nothing is compiled', async () => {
  const tarball = await packWorker(await findWorkerBinary(), join(folder.path, 'dist'));
  const project = join(folder.path, 'project');
  await mkdir(project);
  await writeFile(join(project, 'package.json'), '{}');
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball], { cwd: project });
  const script = await write('no-recipe.sh', 'exit 1\n');
  const find = (from: string) =>
    findWorkerBinary({ env: { XDG_CACHE_HOME: emptyCache() }, from, recipe: { script, packages: '' } });
  const binary = await find(join(project, 'index.js'));
  assert.equal(binary, join(project, 'node_modules', workerPackage, 'mediasoup-worker'));
  const stamp = JSON.parse(await readFile(`${binary}.json`, 'utf8')) as { sha256: string };
  assert.equal(stamp.sha256, sha256(await readFile(binary)));
  await assert.rejects(
    find(join(folder.path, 'index.js')),
    /cannot be built here/,
    'elsewhere it is not installed',
  );
  await writeFile(binary, '#!/bin/sh\nexit 127\n');
  await assert.rejects(find(join(project, 'index.js')), /cannot be built here/, 'it does not start');
});

it('chat serves while it is on its way: /readyz says so, calls are 503 with the time that is left, and then they work', async () => {
  releases.archive = await pack(await findWorkerBinary());
  releases.holding = true;
  const service = await startService({
    env: {
      CHAT_ROLES: 'api,gateway,worker,media',
      CHAT_MEDIA_WORKERS: '1',
      CHAT_MEDIA_PORT: String(await mediaPort(1)),
      CHAT_MEDIA_WORKER_SHA256: sha256(releases.archive),
      CHAT_MEDIA_WORKER_URL: releases.url,
      XDG_CACHE_HOME: emptyCache(),
    },
  });
  try {
    const scene = createScene(service.url);
    const [a, b] = await Promise.all([scene.actor(), scene.actor()]);
    const { id: conversationId } = await scene.direct(a, b);
    await scene.send(a, conversationId);
    const refused = async () =>
      (await a.api('POST', '/v1/calls', { conversationId, kind: 'audio' })).body.error;
    while ((await refused()).retryAfterMs <= 5_000) await delay(100);
    const { code, retryAfterMs } = await refused();
    assert.equal(code, 'calls_unavailable');
    assert.ok(retryAfterMs <= 30_000, String(retryAfterMs));
    const ready = await fetch(`${service.url}/readyz`);
    assert.equal(ready.status, 200);
    assert.equal(((await ready.json()) as { media: string }).media, 'downloading the media worker');
    releases.release();
    await mediaReady(service);
    while ((await a.api('GET', `/v1/calls?conversationId=${conversationId}`)).body.data.length === 0)
      if ((await refused())?.code === 'calls_unavailable') await delay(100);
  } finally {
    await service.dispose();
  }
});
