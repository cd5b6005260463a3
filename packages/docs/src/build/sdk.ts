import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import ts from 'typescript';
import { codeBlock } from './code.ts';
import { html, prose } from './html.ts';
import type { Html } from './html.ts';
import type { Entry } from './navigation.ts';
import type { Page } from './page.ts';

/**
 * What a package exports, from its sources. They are parsed and not checked, which takes a tenth of a second instead of
 * several: all that is exported says its types.
 */

interface Declared {
  name: string;
  /** Where the declaration stands in another package of ours: an object of the protocol. */
  object?: true;
  kind: 'function' | 'class' | 'type' | 'value';
  text: string;
  /** Its signature, or the whole of a type. */
  code: string;
}

type Exports = Map<string, Declared[]>;

/** Citations are only for readers of the repository. */
const uncited = (text: string): string =>
  text
    .replaceAll(/ ?\((?:see )?[a-z]+#[a-z0-9-]+(?:, [a-z]+#[a-z0-9-]+)*\)/g, '')
    .replaceAll(/(^|\. )(?:[a-z]+#[a-z0-9-]+(?:, )?)+[.:]\s?/g, '$1')
    .replaceAll(/@internal\s?/g, '');

function commentOf(node: ts.Node, source: ts.SourceFile): string {
  const range = (ts.getLeadingCommentRanges(source.text, node.pos) ?? []).at(-1);
  const comment = range && source.text.slice(range.pos, range.end);
  if (!comment?.startsWith('/**')) return '';
  return uncited(
    comment
      .replaceAll(/^\/\*\*|\*\/$/g, '')
      .replaceAll(/^\s*\* ?/gm, '')
      .replaceAll(/^@param (\w+) /gm, '`$1`: ')
      .trim()
      .replaceAll(/\s*\n\s*/g, ' '),
  );
}

const has = (node: ts.HasModifiers, kind: ts.SyntaxKind): boolean =>
  node.modifiers?.some((one) => one.kind === kind) === true;

/** The text of a function without its body. */
function signature(node: ts.Node & { body?: ts.Node }, source: ts.SourceFile): string {
  const end = node.body ? node.body.getStart(source) : node.end;
  return source.text
    .slice(node.getStart(source), end)
    .replace(/^export (default )?/, '')
    .replace(/[\s={>]*$/, '');
}

/** `(id: string): Promise<X>` of a function that is a value. */
function callable(node: ts.Expression | undefined, source: ts.SourceFile): string | undefined {
  if (!node || !(ts.isArrowFunction(node) || ts.isFunctionExpression(node))) return undefined;
  return signature(node, source)
    .replace(/\s*=>$/, '')
    .replace(/^async /, '');
}

function memberOf(member: ts.ClassElement, source: ts.SourceFile): string | undefined {
  const isHidden =
    (member.name && ts.isPrivateIdentifier(member.name)) ||
    (ts.canHaveModifiers(member) && has(member, ts.SyntaxKind.PrivateKeyword)) ||
    /@internal/.test(source.text.slice(member.pos, member.getStart(source)));
  if (isHidden) return undefined;
  const comment = commentOf(member, source);
  const above = comment === '' ? '' : `  /** ${comment} */\n`;
  if (ts.isPropertyDeclaration(member)) {
    const name = member.name.getText(source);
    const called = callable(member.initializer, source);
    if (called !== undefined && !member.type) return `${above}  ${name}${called};`;
    return `${above}  ${name}${member.type ? `: ${member.type.getText(source)}` : ''};`;
  }
  if (ts.isMethodDeclaration(member) || ts.isConstructorDeclaration(member) || ts.isGetAccessor(member))
    return `${above}  ${signature(member, source)
      .replaceAll('\n', '\n  ')
      .replace(/^async /, '')};`;
  return undefined;
}

function declaredBy(statement: ts.Statement, source: ts.SourceFile): Declared[] {
  const text = commentOf(statement, source);
  const whole = (): string =>
    uncited(source.text.slice(statement.getStart(source), statement.end).replace(/^export /, ''));
  if (ts.isFunctionDeclaration(statement) && statement.name)
    return [{ name: statement.name.text, kind: 'function', text, code: signature(statement, source) }];
  if (ts.isClassDeclaration(statement) && statement.name) {
    const heritage = statement.heritageClauses?.map((one) => ` ${one.getText(source)}`).join('') ?? '';
    const members = statement.members.map((one) => memberOf(one, source)).filter((one) => one !== undefined);
    const code = `class ${statement.name.text}${heritage} {\n${members.join('\n')}\n}`;
    return [{ name: statement.name.text, kind: 'class', text, code }];
  }
  if (ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement))
    return [{ name: statement.name.text, kind: 'type', text, code: whole() }];
  if (!ts.isVariableStatement(statement)) return [];
  return statement.declarationList.declarations.flatMap((one): Declared[] => {
    if (!ts.isIdentifier(one.name)) return [];
    const name = one.name.text;
    const called = one.type ? undefined : callable(one.initializer, source);
    if (called !== undefined) return [{ name, kind: 'function', text, code: `function ${name}${called}` }];
    const cast = one.initializer && ts.isAsExpression(one.initializer) ? one.initializer.type : undefined;
    const type = one.type ?? cast;
    return [{ name, kind: 'value', text, code: `const ${name}${type ? `: ${type.getText(source)}` : ''}` }];
  });
}

const read = new Map<string, Exports>();

/** What a module declares, and under which names others get it. A module is read once. */
function moduleOf(file: string, onlyExported = true): Exports {
  const key = `${file} ${onlyExported}`;
  const known = read.get(key);
  if (known) return known;
  const found: Exports = new Map();
  read.set(key, found);
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest);
  const add = (name: string, declared: Declared[]) =>
    found.set(name, [...(found.get(name) ?? []), ...declared.map((one) => ({ ...one, name }))]);
  for (const statement of source.statements) {
    if (ts.isExportDeclaration(statement)) {
      for (const [name, declared] of reexported(statement, file)) add(name, declared);
    } else if (
      !onlyExported ||
      (ts.canHaveModifiers(statement) && has(statement, ts.SyntaxKind.ExportKeyword))
    )
      for (const one of declaredBy(statement, source)) add(one.name, [one]);
  }
  return found;
}

function reexported({ moduleSpecifier, exportClause }: ts.ExportDeclaration, file: string): Exports {
  const from = moduleSpecifier && ts.isStringLiteral(moduleSpecifier) ? moduleSpecifier.text : '';
  const names =
    exportClause && ts.isNamedExports(exportClause)
      ? exportClause.elements.map((one) => [one.name.text, (one.propertyName ?? one.name).text] as const)
      : null;
  if (from.startsWith('@parley/'))
    return new Map(
      (names ?? []).map(([name]) => [name, [{ name, object: true, kind: 'type', text: '', code: '' }]]),
    );
  const target = from === '' ? file : resolve(dirname(file), from);
  if (!existsSync(target)) return new Map();
  const found = moduleOf(target, from !== '');
  if (names === null) return found;
  return new Map(names.map(([name, original]) => [name, found.get(original) ?? objectNamed(original)]));
}

/** A type that the module itself takes from the protocol. */
const objectNamed = (name: string): Declared[] => [{ name, object: true, kind: 'type', text: '', code: '' }];

const order: Declared['kind'][] = ['function', 'class', 'value', 'type'];
const titles: Record<Declared['kind'], string> = {
  function: 'Functions and components',
  class: 'Classes',
  value: 'Values',
  type: 'Types',
};

/** @param objects the names that the page of objects has. */
export function sdkPage(entry: Entry, folder: string, objects: ReadonlySet<string>): Page {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    description: string;
    exports: Record<string, string>;
  };
  const modules = Object.entries(manifest.exports)
    .filter(([, file]) => /\.tsx?$/.test(file))
    .map(([path, file]) => ({
      name: path === '.' ? entry.title : `${entry.title}${path.slice(1)}`,
      id: path === '.' ? 'main' : path.slice(2),
      declared: [...moduleOf(join(folder, file))].flatMap(([, list]) => list),
    }));
  const part = (module: string, { name, text, code, object }: Declared): Html =>
    html`<h3 id="${module}.${name}">${name}</h3>
      ${text !== '' && html`<p>${prose(text)}</p>`}
      ${object ? objectLink(name, objects) : codeBlock([{ label: 'TypeScript', language: 'typescript', text: code }])}`;
  const once = (list: Declared[]): Declared[][] => [...Map.groupBy(list, ({ name }) => name).values()];
  return {
    ...entry,
    kind: 'guide',
    body: html`<p>${manifest.description}</p>
      ${modules.map(
        ({ name, id, declared }) =>
          html`<h2 id="${id}"><code>${name}</code></h2>
            ${order.map((kind) => {
              // A class that is exported as a value and a type is one entry.
              const list = once(declared).filter(([first]) => first!.kind === kind);
              return (
                list.length > 0 &&
                html`<p class="kicker">${titles[kind]}</p>
                  ${list.map(([first, ...more]) => {
                    const code = [first!, ...more].map((one) => one.code).join('\n\n');
                    return part(id, {
                      ...first!,
                      code,
                      text: [first!, ...more]
                        .map((one) => one.text)
                        .join(' ')
                        .trim(),
                    });
                  })}`
              );
            })}`,
      )}`,
    parts: modules.map(({ name, id }) => ({ id, label: html`${name}` })),
    found: modules.flatMap(({ id, declared }) =>
      declared.map(({ name, text }) => ({
        id: `${id}.${name}`,
        title: name,
        text: `${entry.title} ${text}`,
      })),
    ),
  };
}

const objectLink = (name: string, objects: ReadonlySet<string>): Html =>
  objects.has(name)
    ? html`<p>
        The object <a href="/docs/reference/objects#${name}"><code>${name}</code></a> of the API.
      </p>`
    : html`<p>A type of the API.</p>`;
