import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { cached } from '../../../../scripts/test-cache.ts';
import { readConfig, settings } from '../../src/config.ts';
import { repositoryFile, repositoryPath } from './files.ts';

/** docs/operations/deployment.md: what can be said about the files in `deploy/` without the programs that run them. The proxies have a test of their own. */

const known = new Set(settings.map(({ name }) => name));
/** Names that look like settings of ours, where a file sets them. */
const settingsIn = (text: string): string[] =>
  [...text.matchAll(/\b(CHAT_\w+|DATABASE_URL|REDIS_URL)\b/g)].map(([, name]) => name!);

/** Runs a program and expects that it is content. */
function run(command: string, args: string[], options: { input?: string } = {}): string {
  const done = spawnSync(command, args, { encoding: 'utf8', ...options });
  const output = `${done.stdout}${done.stderr}`;
  assert.equal(done.status, 0, output || String(done.error));
  return output;
}

it('every setting that a file names exists', () => {
  const files = globSync('deploy/**/*', { cwd: repositoryPath('.'), withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  assert.ok(files.length > 10);
  for (const file of files)
    for (const name of settingsIn(readFileSync(file, 'utf8'))) assert.ok(known.has(name), `${file}: ${name}`);
});

describe('systemd', () => {
  const unit = repositoryFile('deploy/systemd/parley.service');

  it('takes the unit, and rates its exposure below 2 of 10 (systemd-analyze verify, security)', () => {
    const folder = mkdtempSync(join(tmpdir(), 'parley-unit-'));
    try {
      const file = join(folder, 'parley.service');
      // The program is not where an operator puts it.
      const here = unit.replace('/opt/parley/node_modules/.bin/node', process.execPath);
      assert.notEqual(here, unit);
      writeFileSync(file, here);
      assert.equal(run('systemd-analyze', ['verify', '--man=no', file]).trim(), '');
      const rating = run('systemd-analyze', ['security', '--offline=true', '--threshold=20', file]);
      assert.match(rating, /Overall exposure level for parley\.service: [01]\.\d/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('starts the program of npm start', () => {
    const { scripts } = JSON.parse(repositoryFile('package.json')) as { scripts: Record<string, string> };
    const [, program] = /^ExecStart=\S+\/node (\S+)$/m.exec(unit)!;
    assert.equal(scripts['start'], `exec node ${program}`);
  });

  it('the file with the settings is read by the service, also with every line in use', () => {
    const text = repositoryFile('deploy/systemd/parley.env');
    const read = (lines: string) =>
      readConfig(
        Object.fromEntries([...lines.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name, value]) => [name, value])),
      );
    const shipped = read(text);
    assert.deepEqual(shipped.unknown, []);
    assert.equal(shipped.config.ownMachine, false, 'it does not count as a developer’s machine');
    assert.equal(shipped.config.allowPrivateTargets, false);
    const filled = text
      .replaceAll(/^# (?=[A-Z_]+=)/gm, '')
      .replace(/^(CHAT_TURN_SECRET=)$/m, '$1secret')
      .replace(/^(CHAT_MEDIA_URL=)$/m, '$1s3://KEY:SECRET@bucket?preset=aws&region=eu-west-1');
    const all = read(filled);
    assert.deepEqual(all.unknown, []);
    assert.equal(all.config.processes, 4);
    assert.equal(all.config.turn.secret, 'secret');
  });
});

describe('Docker', () => {
  it('the image is made of files that exist, and starts the program of npm start', () => {
    const text = repositoryFile('deploy/docker/Dockerfile');
    const copies = [...text.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, from]) => from!.split(' '));
    assert.deepEqual(copies, ['package.json', 'package-lock.json', 'packages']);
    for (const path of copies) assert.ok(existsSync(repositoryPath(path)), path);
    const ignored = repositoryFile('deploy/docker/Dockerfile.dockerignore');
    for (const path of copies) assert.ok(ignored.includes(`\n!${path}\n`), `${path} is sent to Docker`);
    const { scripts } = JSON.parse(repositoryFile('package.json')) as { scripts: Record<string, string> };
    const [, command] = /^CMD (\[.+\])$/m.exec(
      text.slice(text.lastIndexOf('HEALTHCHECK')).replace(/^ .*$/gm, ''),
    )!;
    const [node, program] = JSON.parse(command!) as string[];
    assert.equal(node, 'node_modules/.bin/node');
    assert.equal(scripts['start'], `exec node ${program}`);
    for (const [, script] of text.matchAll(/npm run (\S+)/g)) assert.ok(scripts[script!], script);
  });

  it('compose mounts what exists, and every variable that it asks for is explained', () => {
    const text = repositoryFile('deploy/docker/compose.yaml');
    const [, mounted] = /- (\.\.\/\S+?):/.exec(text)!;
    assert.ok(existsSync(repositoryPath(join('deploy/docker', mounted!))), mounted);
    const asked = new Set([...text.matchAll(/\$\{(\w+)/g)].map(([, name]) => name));
    const explained = new Set([...text.matchAll(/^# {3}(\w+)=/gm)].map(([, name]) => name));
    assert.deepEqual([...asked].sort(), [...explained].sort());
  });
});

describe('Kubernetes', () => {
  const validator = cached('kubernetes-validate/1.37.0');
  const files = globSync(repositoryPath('deploy/kubernetes/*.yaml'));
  assert.equal(files.length, 4);

  if (!validator)
    console.log(
      '!!! LEFT OUT: THE MANIFESTS OF KUBERNETES: kubernetes-validate comes from PyPI; npm test fetches it where it can.',
    );
  else
    it('the manifests have no field that the schemas of Kubernetes do not have', () => {
      for (const version of ['1.30', '1.37'])
        run(join(validator, 'bin/python'), [
          ...['-m', 'kubernetes_validate', '--strict', '--quiet', '-k', version],
          ...files,
        ]);
    });

  it('probes ask for paths and ports that the service has', () => {
    const text = files.map((file) => readFileSync(file, 'utf8')).join('\n');
    const probed = new Set([...text.matchAll(/path: (\/\w+), port/g)].map(([, path]) => path));
    assert.deepEqual([...probed].sort(), ['/healthz', '/readyz']);
  });
});

it('docs/operations/sizing.md counts with the unit costs of docs/scaling.md', () => {
  const costs = (file: string) =>
    new Map(
      [...repositoryFile(file).matchAll(/^\| (an? .+|the way .+) \| (.+) \|$/gm)].map(([, what, cost]) => [
        what!,
        cost!,
      ]),
    );
  const measured = costs('docs/scaling.md');
  const used = costs('docs/operations/sizing.md');
  assert.equal(used.size, 7);
  for (const [what, cost] of used) assert.equal(cost, measured.get(what), what);
});

it('docs/calls.md shows deploy/coturn/turnserver.conf as it is', () => {
  const shipped = repositoryFile('deploy/coturn/turnserver.conf').replace(/^#.*\n/, '');
  assert.ok(repositoryFile('docs/calls.md').includes(shipped));
});
