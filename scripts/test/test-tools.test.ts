import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fetchTool, tools } from '../test-tools.ts';

const cache = mkdtempSync(join(tmpdir(), 'parley-cache-'));
after(() => rmSync(cache, { recursive: true }));

test('a tool is in the cache when it was fetched whole', () => {
  const fetch = (into: string) => ['sh', '-c', `echo done > "${into}/file"`];
  assert.equal(fetchTool({ folder: 'good/1', fetch }, cache), null);
  assert.equal(readFileSync(join(cache, 'good/1/file'), 'utf8'), 'done\n');
  assert.deepEqual(readdirSync(join(cache, 'good')), ['1']);
});

test('a tool that cannot be fetched leaves its reason and nothing else', () => {
  const fetch = (into: string) => ['sh', '-c', `echo half > "${into}/file"; echo no network >&2; exit 3`];
  assert.equal(fetchTool({ folder: 'bad/1', fetch }, cache), 'no network');
  assert.ok(!existsSync(join(cache, 'bad/1')));
  const missing = fetchTool({ folder: 'bad/2', fetch: () => ['no-such-program'] }, cache);
  assert.match(missing!, /ENOENT/);
  assert.deepEqual(readdirSync(join(cache, 'bad')), []);
});

test('Maven is asked for one version, and no address of a registry is written down', () => {
  const tool = tools.find(({ name }) => name === 'mongo-java-server')!;
  const into = mkdtempSync(join(cache, 'pom-'));
  assert.equal(tool.fetch(into)[0], 'mvn');
  const pom = readFileSync(join(into, 'pom.xml'), 'utf8');
  assert.match(pom, /<artifactId>mongo-java-server<\/artifactId><version>1\.47\.0</);
  assert.doesNotMatch(pom, /:\/\//);
});
