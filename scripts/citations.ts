// npm run check -- citations: every citation (`presence#grace`) and every link between documents leads somewhere.
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

const files = globSync([
  '{packages,bench,scripts,examples,docs,notes}/**/*.{ts,tsx,js,mjs,sql,md,go}',
  '*.md',
]).filter(
  (file) =>
    !/node_modules|(^|\/)(dist|generated|migrations)\/|^scripts\/(test\/)?(citations|uncited)|^CHANGELOG\.md$/.test(
      file,
    ),
);
const text = new Map(files.map((file) => [file, readFileSync(file, 'utf8')]));
const problems: string[] = [];

/** A document's anchors: those it sets, and its headings as GitHub names them. */
const anchors = new Map<string, Set<string>>();
for (const [file, source] of text) {
  if (!file.endsWith('.md')) continue;
  const set = [...source.matchAll(/<a id="([^"]+)">/g)].map(([, id]) => id!);
  for (const id of set.filter((one, i) => set.indexOf(one) !== i))
    problems.push(`${file}: the anchor ${id} occurs twice`);
  const headings = [...source.matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
    title!
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  );
  anchors.set(file, new Set([...set, ...headings]));
}
const subjects = globSync('docs/reference/*.md').map((file) => basename(file, '.md'));
const citation = new RegExp(`(?<![\\w/.#-])(${subjects.join('|')})#([a-z][a-z0-9-]*)`, 'g');
const former = /\b(?:SPEC|DECISIONS|PITFALLS|EXTENSIONS)\b/g;

for (const [file, source] of text) {
  const report = (index: number, problem: string) =>
    problems.push(`${file}:${source.slice(0, index).split('\n').length}: ${problem}`);
  for (const { 0: whole, 1: subject, 2: rule, index } of source.matchAll(citation))
    if (!anchors.get(`docs/reference/${subject}.md`)!.has(rule!))
      report(index, `${whole} is not a rule of docs/reference`);
  for (const { 0: whole, index } of source.matchAll(former))
    report(index, `${whole} is not in the repository; cite a rule of docs/reference`);
  if (!file.endsWith('.md')) continue;
  for (const { 1: target, index } of source.matchAll(/\]\((?![a-z]+:)([^)\s]+)\)/g)) {
    const [path = '', anchor] = target!.split('#');
    const to = path === '' ? file : join(dirname(file), path);
    if (!existsSync(to)) report(index, `${target} does not exist`);
    else if (anchor && anchors.has(to) && !anchors.get(to)!.has(anchor))
      report(index, `${target} has no such anchor`);
  }
}
for (const problem of problems) console.log(problem);
process.exit(problems.length === 0 ? 0 : 1);
