import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { transform } from 'esbuild';
import { operations } from '@parley/protocol';
import type { Operation } from '@parley/protocol';
import { Value } from 'typebox/value';
import { readOpenApi } from '../src/build/documents.ts';
import { callsOf } from '../src/build/reference-call.ts';
import { filled } from '../src/build/samples.ts';
import { root } from '../src/build/site.ts';
import { environments } from '../../server/test/support/service.ts';
import { use, useService } from '../../server/test/support/use.ts';
import { order } from './reference-order.ts';
import { blocksOf, makeFolder, ownNames } from './run.ts';
import type { Block } from './run.ts';
import { makeStage, runSamples } from './scene.ts';

/** Every example of the guides and of the reference, run as it stands against the real service. */

const { service, server } = useService();
const folder = use(makeFolder, (made) => made.remove());
const guides = join(root, 'docs/guides');
const names = readdirSync(guides).filter((name) => name.endsWith('.md'));
const long = { timeout: 10 * 60_000 };
const python = spawnSync('python3', ['--version']).status === 0;

describe('examples of the reference', () => {
  it('those with a key or a token work with curl and Node', long, async () => {
    for (const label of ['curl', 'Node']) {
      const stage = await makeStage(service.url, server);
      await runSamples(folder, stage, order, label);
    }
  });

  it('all others send what the operation takes', async () => {
    for (const call of callsOf(await readOpenApi())) {
      const declared = (operations as Record<string, Operation>)[call.op.operationId];
      const { body } = filled(call);
      if (declared?.body)
        assert.ok(Value.Check(declared.body, body), `${call.op.operationId}: ${JSON.stringify(body)}`);
    }
  });
});

/** Lines that start or install something: looked at, not run. */
const command =
  /^(npm install|npx parley|npm run parley --|node |export |[A-Z_]+=\S+ (node|npm run parley --) )/;
const isCommands = ({ text }: Block): boolean =>
  text
    .trim()
    .split('\n')
    .every((line) => command.test(line));

describe('examples of the guides', () => {
  for (const name of names) {
    const blocks = blocksOf(readFileSync(join(guides, name), 'utf8'));
    it(`${name}: what a shell or Node runs`, long, async () => {
      const own = ownNames();
      const env = { PARLEY_URL: service.url, PARLEY_SECRET_KEY: environments.dev.secretKey };
      for (const block of blocks) {
        const text = own(block.text);
        if (block.language === 'sh' && !isCommands(block)) {
          const { code, output } = await folder.run('sh', ['-eu', await folder.write('guide.sh', text)], env);
          assert.equal(code, 0, output);
          assert.notEqual(output.trim(), '', text);
          assert.doesNotMatch(output, /"error":\s*\{/, text);
        } else if (block.language === 'js' && block.file === undefined) {
          const ran = await folder.run(process.execPath, [await folder.write('guide.mjs', text)], env);
          assert.equal(ran.code, 0, ran.output);
          // What a comment says is printed, is printed.
          for (const [, said] of text.matchAll(/^console\.log\(.*\); \/\/ (.*)$/gm))
            assert.ok(ran.output.includes(said!), `${said} is not in:\n${ran.output}`);
        } else if (block.language === 'python' && python) {
          const ran = await folder.run('python3', [await folder.write('guide.py', text)], env);
          assert.equal(ran.code, 0, ran.output);
        } else if (/^tsx?$/.test(block.language)) await transform(text, { loader: 'tsx' });
        else
          assert.ok(
            isCommands(block) || block.file !== undefined || block.language === 'python',
            `nobody runs ${block.language}: ${text}`,
          );
      }
    });
  }

  it('name commands and packages that exist', () => {
    const commands = readFileSync(join(root, 'docs/operations/command-line.md'), 'utf8');
    const known = new Set([...commands.matchAll(/^## (.*)$/gm)].map(([, title]) => title!));
    for (const name of names)
      for (const { text } of blocksOf(readFileSync(join(guides, name), 'utf8'))) {
        for (const [, words] of text.matchAll(/(?:npm run parley --|npx parley) ([a-z-]+(?: [a-z-]+)?)/g))
          assert.ok(known.has(words!) || known.has(words!.split(' ')[0]!), `${name}: parley ${words}`);
        for (const [, list] of text.matchAll(/^npm install (.*)$/gm))
          for (const one of list!.split(' '))
            assert.ok(readFileSync(join(root, 'node_modules', one, 'package.json')), `${name}: ${one}`);
      }
  });
});
