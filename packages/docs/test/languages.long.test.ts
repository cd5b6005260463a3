import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import ts from 'typescript';
import { root } from '../src/build/site.ts';
import { use, useService } from '../../server/test/support/use.ts';
import { order } from './reference-order.ts';
import { blocksOf, makeFolder } from './run.ts';
import { checkRun, makeStage, runSamples } from './scene.ts';

/** The examples in the languages that this machine may lack, and the types of those for pages. */

const { service, server } = useService();
const folder = use(makeFolder, (made) => made.remove());
const long = { timeout: 20 * 60_000 };
const lacks = (program: string, argument: string) =>
  spawnSync(program, [argument]).status !== 0 && `this machine has no ${program}`;

describe('examples of the reference', () => {
  it('work in Python', { ...long, skip: lacks('python3', '--version') }, async () => {
    const stage = await makeStage(service.url, server);
    await runSamples(folder, stage, order, 'Python');
  });

  it('work in Go', { ...long, skip: lacks('go', 'version') }, async () => {
    const stage = await makeStage(service.url, server);
    await folder.write('go.mod', 'module examples\n\ngo 1.21\n');
    // One program of all: each links half of Go's library.
    for (const [i, name] of order.entries()) {
      const text = stage.sample(stage.calls.get(name)!, 'Go');
      await folder.write(`example${i}.go`, text.replace('func main() {', `func example${i}() {`));
    }
    const calls = order.map((_name, i) => `\texample${i}()`);
    await folder.write('main.go', `package main\n\nfunc main() {\n${calls.join('\n')}\n}\n`);
    const built = await folder.run('go', ['build', '-o', 'examples', '.'], { GOPROXY: 'off' });
    assert.equal(built.code, 0, built.output);
    // Each answer begins with its status.
    const { code, output } = await folder.run(join(folder.path, 'examples'), [], stage.env);
    assert.equal(code, 0, output);
    const answers = output.split(/^(?=\d{3} )/m);
    assert.equal(answers.length, order.length, output);
    for (const [i, name] of order.entries()) checkRun(name, 'Go', answers[i]!);
  });
});

it('the code for pages has the right types', long, async () => {
  const guides = join(root, 'docs/guides');
  // Below the packages that it imports.
  const place = await mkdtemp(join(root, 'node_modules/.cache/docs-types-'));
  try {
    const files: string[] = [join(place, 'css.d.ts')];
    await writeFile(files[0]!, `declare module '*.css';\n`);
    for (const name of await readdir(guides))
      for (const [i, { language, text }] of blocksOf(await readFile(join(guides, name), 'utf8')).entries())
        if (/^tsx?$/.test(language)) {
          const file = join(place, `${name}-${i}.tsx`);
          await writeFile(file, `${text}\nexport {};\n`);
          files.push(file);
        }
    assert.ok(files.length > 3);
    const program = ts.createProgram(files, {
      target: ts.ScriptTarget.ES2024,
      module: ts.ModuleKind.ESNext,
      moduleResolution: ts.ModuleResolutionKind.Bundler,
      lib: ['lib.esnext.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
      jsx: ts.JsxEmit.ReactJSX,
      strict: true,
      noEmit: true,
      skipLibCheck: true,
      allowImportingTsExtensions: true,
      types: [],
    });
    const found = files.flatMap((file) => ts.getPreEmitDiagnostics(program, program.getSourceFile(file)));
    assert.deepEqual(
      found.map((one) => `${one.file?.fileName}: ${ts.flattenDiagnosticMessageText(one.messageText, '\n')}`),
      [],
    );
  } finally {
    await rm(place, { recursive: true });
  }
});
