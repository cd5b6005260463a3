// The types that a library takes from the protocol package, written out: there they are derived from schemas, and whoever installs the
// library should need neither the schemas nor the package that makes them.
import prettier from 'prettier';
import ts from 'typescript';

/** Types with a parameter, which are looked up in a table: the keys, and the name that stands for all of them. */
export interface Tables {
  key: string;
  keys: string[];
  of: string[];
}

const plain = `type Plain<T> = T extends (infer U)[] ? Plain<U>[] : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;`;
const { NoTruncation, InTypeAlias, UseSingleQuotesForStringLiteralType } = ts.TypeFormatFlags;
const flags = NoTruncation | InTypeAlias | UseSingleQuotesForStringLiteralType;

/** The names that the sources import from the protocol package. */
export function protocolNames(sources: string[]): string[] {
  const imports = /(?:import|export) type \{([^}]*)\} from '@parley\/protocol'/g;
  const lists = sources.flatMap((text) => [...text.matchAll(imports)].map((match) => match[1]!));
  const names = lists.flatMap((list) => list.split(',').map((name) => name.trim()));
  return [...new Set(names)].filter((name) => name !== '').sort();
}

/**
 * A declaration file with all of these types. Those of `internal` have a parameter too, and only what is not public uses them.
 * @param beside a path in the library's sources, from which the protocol package is found.
 */
export async function plainTypes(
  names: string[],
  options: ts.CompilerOptions,
  beside: string,
  { tables, internal }: { tables?: Tables; internal?: string[] },
): Promise<string> {
  const special = new Set([...(internal ?? []), ...(tables ? [tables.key, ...tables.of] : [])]);
  const aliases = names
    .filter((name) => !special.has(name))
    .map((name) => `export type ${name} = Plain<P.${name}>;`);
  const rows = (tables?.of ?? []).map((name) => {
    const fields = tables!.keys.map(
      (key) => `${JSON.stringify(key)}: Plain<P.${name}<${JSON.stringify(key)}>>`,
    );
    return `export type ${name}s = { ${fields.join('; ')} };`;
  });
  const probe = `${beside}/__plain.ts`;
  const text = [`import type * as P from '@parley/protocol';`, plain, ...aliases, ...rows].join('\n');
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists } = host;
  host.fileExists = (path) => path === probe || fileExists(path);
  host.getSourceFile = (path, ...rest) =>
    path === probe ? ts.createSourceFile(path, text, rest[0]) : getSourceFile(path, ...rest);
  const program = ts.createProgram([probe], options, host);
  const checker = program.getTypeChecker();
  const lines: string[] = [];
  program.getSourceFile(probe)!.forEachChild((node) => {
    if (!ts.isTypeAliasDeclaration(node) || node.name.text === 'Plain') return;
    const type = checker.typeToString(checker.getTypeAtLocation(node), undefined, flags);
    if (/\bany\b|Plain</.test(type)) throw new Error(`${node.name.text} is not plain: ${type}`);
    lines.push(`export type ${node.name.text} = ${type};`);
  });
  if (tables) {
    lines.push(`export type ${tables.key} = keyof ${tables.of[0]}s;`);
    for (const name of tables.of) lines.push(`export type ${name}<N extends ${tables.key}> = ${name}s[N];`);
  }
  for (const name of internal ?? [])
    lines.push(`export type ${name}<T extends string> = T extends '' ? never : any;`);
  return prettier.format(lines.join('\n'), { parser: 'typescript', singleQuote: true, printWidth: 110 });
}
