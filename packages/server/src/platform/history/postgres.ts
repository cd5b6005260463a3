import pg from 'pg';
import { Client, connection, tableIn, translate } from './postgres-connection.ts';
import type { History, HistoryRecord, HistoryReport, MessageRecord } from './port.ts';
import { relational } from './relational.ts';
import type { Statement } from './relational.ts';
import { examine, isoOf, maxConnections, readMeta, sentences, shapes, timesOf, valueOf } from './shared.ts';
import type { HistoryDeps } from './shared.ts';
import type { HistoryTarget } from './target.ts';

/** Milliseconds: text depends on settings of the session, and to_char takes as long as all the rest of the row. */
const time = (column: string) => `date_part('epoch', ${column}) * 1000`;
const columns = `'message' AS kind, id, conversation_id AS "conversationId", seq::float8 AS seq, sender_id AS "senderId", text, reply_to AS "replyTo",
  attachments, metadata, version, ${time('created_at')} AS "createdAt", ${time('edited_at')} AS "editedAt", ${time('deleted_at')} AS "deletedAt",
  hard, revision::float8 AS revision`;

type MessageRow = Omit<MessageRecord, 'createdAt' | 'editedAt' | 'deletedAt'> &
  Record<'createdAt' | 'editedAt' | 'deletedAt', number | null>;
const iso = (ms: number | null) => (ms === null ? null : isoOf(new Date(Math.round(ms))));
const record = (row: MessageRow): MessageRecord => ({
  ...row,
  createdAt: iso(row.createdAt)!,
  editedAt: iso(row.editedAt),
  deletedAt: iso(row.deletedAt),
});

/** An upsert that takes one array per column, and lets no older record replace a newer one. */
function upsert(
  table: string,
  key: readonly string[],
  fields: readonly string[],
  operator: '>' | '>=',
): string {
  const others = fields.filter((c) => !key.includes(c));
  return `INSERT INTO ${table} AS t (env, ${fields.join(', ')})
    SELECT $1, ${fields.map((c) => `u.${c}`).join(', ')}
    FROM unnest(${fields.map((c, i) => `$${i + 2}::${types[c] ?? 'text'}[]`).join(', ')}) AS u(${fields.join(', ')})
    ON CONFLICT (${['env', ...key].join(', ')}) DO UPDATE SET ${others.map((c) => `${c} = excluded.${c}`).join(', ')}
    WHERE excluded.revision ${operator} t.revision`;
}

const types: Record<string, string> = {
  seq: 'bigint',
  version: 'int',
  revision: 'bigint',
  hard: 'boolean',
  removed: 'boolean',
  created_at: 'timestamptz',
  edited_at: 'timestamptz',
  deleted_at: 'timestamptz',
};

/** With PostgreSQL's numbers for `?`. */
function numbered(sql: string): string {
  let n = 0;
  return sql.replaceAll('?', () => `$${++n}`);
}

/** A column without any value is sent as null: the others say how many rows there are. */
function columnOf(rows: readonly HistoryRecord[], column: string): unknown[] | null {
  const values = rows.map((row) => valueOf(row, column));
  return values.every((value) => value === null) ? null : values;
}

export async function openPostgres(target: HistoryTarget, deps: HistoryDeps): Promise<History> {
  const settings = await connection(target, deps);
  const { idleMs, statementMs } = timesOf(deps);
  const pool = new pg.Pool({
    ...settings,
    max: maxConnections,
    idleTimeoutMillis: idleMs,
    Client,
    // So that the server does not go on when nobody waits any more. The pool waits for it. Not at the start of the
    // connection: poolers refuse parameters there.
    onConnect: ((client: pg.ClientBase) => client.query(`SET statement_timeout = ${statementMs}`)) as (
      client: pg.ClientBase,
    ) => void,
  });
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  const { env } = deps;
  const at = tableIn(target);

  async function run<R extends object>(sql: string, values: unknown[] = []): Promise<R[]> {
    try {
      return (await pool.query<R>(numbered(sql), values)).rows;
    } catch (error) {
      throw translate(error);
    }
  }

  async function transaction(statements: readonly Statement[]): Promise<void> {
    if (statements.length === 1) return void (await run(...statements[0]!));
    const client = await pool.connect().catch((error: unknown) => {
      throw translate(error);
    });
    let broken = true;
    try {
      await client.query('BEGIN');
      for (const [sql, values] of statements) await client.query(numbered(sql), values);
      await client.query('COMMIT');
      broken = false;
    } catch (error) {
      broken = await client.query('ROLLBACK').then(
        () => false,
        () => true,
      );
      throw translate(error);
    } finally {
      client.release(broken);
    }
  }

  return {
    writesAtOnce: 2,
    test: () => test(run, target, at),
    ...relational<MessageRow>(deps, {
      columns,
      record,
      at,
      now: 'now()',
      upsert: (kind, fields, rows, rewrite) => [
        upsert(at(shapes[kind].table), shapes[kind].key, fields, rewrite ? '>=' : '>'),
        [env, ...fields.map((c) => columnOf(rows, c))],
      ],
      deletePairs: (table) => `DELETE FROM ${table} m USING ${table} o`,
      run,
      transaction,
    }),
    close: () => pool.end().catch(() => undefined),
  };
}

type Run = <R extends object>(sql: string, values?: unknown[]) => Promise<R[]>;

const test = (run: Run, target: HistoryTarget, at: (table: string) => string): Promise<HistoryReport> =>
  examine(target, translate, async (report, first) => {
    const [row] = await first(() =>
      run<{ version: string; role: string; super: boolean }>(
        `SELECT current_setting('server_version') AS version, current_user AS role,
         (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS super`,
      ),
    );
    report.version = row!.version;
    report.role = row!.role;
    if (row!.super)
      report.warnings.push(
        'The user is a superuser: one that can only read and write these tables is enough.',
      );
    const tables = Object.values(shapes).map((s) => at(s.table));
    const grants = await run<{ name: string; grants: string; owner: boolean; there: boolean }>(
      `SELECT t.name, to_regclass(t.name) IS NOT NULL AS there, array_to_string(ARRAY(SELECT p FROM unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) p
           WHERE to_regclass(t.name) IS NOT NULL AND has_table_privilege(to_regclass(t.name), p)), ' ') AS grants,
         coalesce((SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass(t.name)), false) AS owner
       FROM unnest($1::text[]) AS t(name)`,
      [tables],
    );
    if (grants.some((g) => !g.there)) report.errors.push(sentences.noTables);
    else {
      report.grants = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'].filter((p) =>
        grants.every((g) => g.grants.split(' ').includes(p)),
      );
      for (const needed of ['SELECT', 'INSERT', 'UPDATE'])
        if (!report.grants.includes(needed)) report.errors.push(`The user lacks ${needed} on the tables.`);
      if (grants.some((g) => g.owner)) report.warnings.push('The user can DROP the tables.');
      const meta = await run<{ key: string; value: string }>(`SELECT key, value FROM ${at('parley_meta')}`);
      readMeta(report, meta);
    }
  });
