// npm run check -- statements: SQL of the server stands in `sql.ts` or in a folder `sql` (docs/schema.md), and a table is
// written by its owner, or by a folder that docs/schema.md names beside it.
import { globSync, readFileSync } from 'node:fs';
import ts from 'typescript';

const root = 'packages/server/src/';
/** Folders whose statements are not about the tables of our store. */
const otherwise = [
  'platform/history/', // customers' databases, each in its own dialect
  'platform/postgres/', // PostgreSQL itself: sessions, migrations, whether it answers
  'backup/', // all tables, by name
  'reseal/', // sealed columns of all tables, by name
];
const statement = /\b(?:SELECT|INSERT INTO|DELETE FROM|UPDATE \S+(?: \w+)? SET)\s/;
const write = /\b(?:INSERT INTO|DELETE FROM|UPDATE) (\w+)/g;
const problems: string[] = [];

const isSql = (file: string): boolean => /(^|\/)sql(\/|\.ts$)/.test(file);
const isOtherwise = (file: string): boolean => otherwise.some((folder) => file.startsWith(folder));

/** The strings of a source, each with its line; of a template, what stands between its placeholders. */
function strings(file: string, source: string): { text: string; line: number }[] {
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true);
  const found: { text: string; line: number }[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) {
      const text = ts.isTemplateExpression(node)
        ? [node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)].join('_')
        : node.text;
      found.push({ text, line: tree.getLineAndCharacterOfPosition(node.getStart()).line + 1 });
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return found;
}

const page = readFileSync('docs/schema.md', 'utf8');
const section = page.slice(page.indexOf('## Who writes which table'), page.indexOf('## Unread counts'));
const cells = [...section.matchAll(/^\| (`.*?) \| (.*?) \|/gm)].map(([, first = '', second = '']) => [
  [...first.matchAll(/`([^`]+)`/g)].map(([, name]) => name!),
  [...second.matchAll(/`([^`]+)`/g)].map(([, name]) => name!),
]);
/** Which folders write a table; the first is its owner. */
const writers = new Map<string, string[]>();
for (const [names = [], others = []] of cells)
  if (names[0]!.includes('/') || names[0] === 'log')
    for (const table of others) {
      if (writers.has(table)) problems.push(`docs/schema.md: ${table} has two owners`);
      writers.set(table, [...names]);
    }
for (const [names = [], others = []] of cells)
  if (!names[0]!.includes('/') && names[0] !== 'log')
    for (const table of names) writers.get(table)?.push(...others.filter((name) => /^log$|\//.test(name)));

for (const { 1: table } of readFileSync('packages/server/schema.sql', 'utf8').matchAll(
  /^CREATE TABLE (\w+) \((?![^;]*PARTITION OF)/gm,
))
  if (!writers.has(table!)) problems.push(`docs/schema.md: ${table} has no owner`);

for (const path of globSync(`${root}**/*.{ts,sql}`).sort()) {
  const file = path.slice(root.length);
  if (isOtherwise(file)) continue;
  const source = readFileSync(path, 'utf8');
  const texts = file.endsWith('.sql') ? [{ text: source, line: 1 }] : strings(path, source);
  for (const { text, line } of texts) {
    if (!isSql(file) && statement.test(text))
      problems.push(
        `${path}:${line}: a statement belongs into sql.ts, or a folder sql, of the table's owner`,
      );
    for (const { 1: table } of text.matchAll(write)) {
      const allowed = writers.get(table!);
      if (allowed && !allowed.some((folder) => file.startsWith(`${folder}/`)))
        problems.push(
          `${path}:${line}: ${table} is written by ${allowed.join(', ')} (docs/schema.md), not from here`,
        );
    }
  }
}
for (const problem of problems) console.log(problem);
process.exit(problems.length === 0 ? 0 : 1);
