import { glob, readFile } from 'node:fs/promises';
import type pg from 'pg';
import * as lookups from '../../src/features/sql/lookups.ts';
import type { Queryable } from '../../src/platform/postgres/db.ts';

/** What auto_explain and EXPLAIN (FORMAT JSON) say of one step of a plan. */
interface Step {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Index Cond'?: string;
  Plans?: Step[];
}
export interface Explained {
  text: string;
  plan: Step;
}

/** The plans that auto_explain wrote into a server's log, with the statements of functions. */
export function plansIn(log: string): Explained[] {
  const plans: Explained[] = [];
  // Each begins at the margin; its further lines are indented.
  for (const [, json] of log.matchAll(/^\w+: +duration: .* plan:\n((?:\t.*\n)+)/gm)) {
    const found = JSON.parse(json!) as { 'Query Text': string; Plan: Step };
    plans.push({ text: found['Query Text'], plan: found.Plan });
  }
  return plans;
}

interface Index {
  table: string;
  columns: string[];
  /** Holds few of the rows. */
  partial: boolean;
}

export interface Judge {
  /** What is wrong with a plan: tables that it reads whole, by themselves or through an index. */
  (plan: Step): string[];
}

/** Tables that stay small beside the others: a few rows a tenant, or rows of a few minutes. They may be read whole. */
const small = [
  'account_sessions',
  'accounts',
  'analytics_fill',
  'content_reads',
  'environments',
  'hook_secrets',
  'hooks',
  'invitations',
  'master_key_check',
  'media_nodes',
  'media_storages',
  'media_usage',
  'nodes',
  'organization_accounts',
  'organizations',
  'passkey_challenges',
  'passkeys',
  'password_resets',
  'push_credentials',
  'recovery_codes',
  'schema_functions',
  'schema_migrations',
  'storage',
  'word_lists',
];

export async function createJudge(db: Queryable): Promise<Judge> {
  const rows = await db.query<Index & { name: string }>(
    `SELECT i.indexrelid::regclass::text AS name, i.indrelid::regclass::text AS "table", coalesce(pg_get_expr(i.indpred, i.indrelid), '(deleted_at IS NULL)') <> '(deleted_at IS NULL)' AS partial,
       (SELECT array_agg(pg_get_indexdef(i.indexrelid, k, true) ORDER BY k) FROM generate_series(1, i.indnkeyatts) k) AS columns
     FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE c.relnamespace = 'public'::regnamespace`,
  );
  const indexes = new Map(rows.map((row) => [row.name, row]));
  // A plan has other parentheses and line breaks than the definition of the index.
  const plain = (sql: string): string => sql.replaceAll(/[()]/g, '').replaceAll(/\s+/g, ' ').trim();
  const mentions = (condition: string, column: string): boolean =>
    new RegExp(`(?<![.\\w])${RegExp.escape(plain(column))}(?!\\w)`).test(plain(condition));

  return (plan) => {
    const found: string[] = [];
    const visit = (step: Step): void => {
      const table = step['Relation Name'];
      if (step['Node Type'] === 'Seq Scan' && !small.includes(table!)) found.push(`reads all of ${table}`);
      const index = indexes.get(step['Index Name'] ?? '');
      const condition = step['Index Cond'] ?? '';
      if (index && !small.includes(index.table)) {
        const used = index.columns.map((column) => mentions(condition, column));
        const through = `${index.table} through ${step['Index Name']} (${condition || 'no condition'})`;
        if (!index.partial && !used[0]) found.push(`reads all of ${through}`);
        // It knows the environment and a later column, and reads everything between them.
        const gap = used.indexOf(false);
        if (index.columns[0] === 'env' && gap > 0 && gap < used.lastIndexOf(true))
          found.push(`reads all that an environment has of ${through}`);
      }
      step.Plans?.forEach(visit);
    };
    visit(plan);
    return found;
  };
}

export interface SourceStatement {
  file: string;
  text: string;
  /** Whether a statement that ran, on one line, contains it. */
  isIn(ran: string): boolean;
}

export const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim();
const placeholder = /\$\{(?:[^{}]|\{[^{}]*\})*\}/;

/**
 * Every SQL text of the program but those of small tables, and those for databases that are not ours; where it is put together, the
 * fixed parts of it.
 */
export async function sourceStatements(): Promise<SourceStatement[]> {
  const root = new URL('../../src/', import.meta.url);
  const found: SourceStatement[] = [];
  for await (const file of glob('**/*.ts', { cwd: root, exclude: ['platform/history/**'] })) {
    const source = await readFile(new URL(file, root), 'utf8');
    for (const [literal] of source.matchAll(/`(?:[^`\\]|\\.)*`|'(?:[^'\\\n]|\\.)*'/g)) {
      const text = oneLine(literal.slice(1, -1));
      if (!/^(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH) /.test(text)) continue;
      // A template inside a template ends the part that is looked at.
      const fixed = text.split(placeholder).map((part) => RegExp.escape(oneLine(part.split('${')[0]!)));
      const pattern = new RegExp(fixed.join('.*?'));
      const tables = [...text.matchAll(/(?:FROM|JOIN|INTO|UPDATE) ([a-z_]+)\b(?!\()/g)].map(
        (match) => match[1]!,
      );
      const isSmall = tables.length > 0 && tables.every((table) => small.includes(table));
      if (!isSmall) found.push({ file, text, isIn: (ran) => pattern.test(ran) });
    }
  }
  return found;
}

/** Puts in what lookups.ts gives for constants, and a number for each limit. */
const filledIn = (text: string): string =>
  text
    .replaceAll(/\$\{(\w+)\(('[^']*'(?:, '[^']*')*)\)\}/g, (part, name: string, args: string) => {
      const make = (lookups as Record<string, (...args: string[]) => string>)[name];
      return make ? make(...args.split(', ').map((arg) => arg.slice(1, -1))) : part;
    })
    .replaceAll(/LIMIT \$\{\w+\}/g, 'LIMIT 100');

/** The generic plan of a statement that did not run; null for a part of one. */
export async function explain(client: pg.PoolClient, source: string): Promise<Step | null> {
  const text = filledIn(source);
  const parameters = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map((match) => Number(match[1])));
  const call = parameters === 0 ? '' : `(${new Array(parameters).fill('NULL').join(', ')})`;
  try {
    await client.query(`PREPARE walked AS ${text}`);
  } catch {
    return null;
  }
  const { rows } = await client.query<{ 'QUERY PLAN': { Plan: Step }[] }>(
    `EXPLAIN (FORMAT JSON) EXECUTE walked${call}`,
  );
  await client.query('DEALLOCATE walked');
  return rows[0]!['QUERY PLAN'][0]!.Plan;
}
