import { isIP } from 'node:net';
import pg from 'pg';
import { commonError, HistoryError, historySchemaVersion } from './port.ts';
import type {
  History,
  HistoryErrorClass,
  HistoryRecord,
  HistoryReport,
  MessageRecord,
  Migrated,
} from './port.ts';
import {
  bounds,
  byKind,
  emptyReport,
  extrasColumn,
  hex,
  maxConnections,
  passwordFor,
  readMeta,
  sentences,
  shapes,
  timesOf,
  valueOf,
  writerName,
  isoOf,
} from './shared.ts';
import type { HistoryDeps } from './shared.ts';
import { urlFor } from './target.ts';
import type { HistoryTarget } from './target.ts';

const classes: [RegExp, HistoryErrorClass][] = [
  [/^(08|58)/, 'unreachable'],
  [/^(53|57P|40|55P03)/, 'overloaded'],
  [/^57014$/, 'timeout'],
  [/^(28|3D)/, 'authentication'],
  [/^42501$/, 'permission'],
  [/^(42P01|42703|3F000|42P10)$/, 'schema'],
  [/^(22|23|54)/, 'refused'],
];

function translate(error: unknown): HistoryError {
  const common = commonError(error);
  if (common) return common;
  const { code, message = '' } = error as { code?: string; message?: string };
  // What PgBouncer answers to a login.
  if (code === '08P01' && /no such user|authentication failed/i.test(message))
    return new HistoryError(
      'authentication',
      code,
      'a pooler (PgBouncer) stands before it and does not know them',
    );
  if (code === '08P01' && /startup parameter/i.test(message))
    return new HistoryError(
      'failed',
      code,
      'a pooler (PgBouncer) stands before it and refuses a parameter of the connection',
    );
  if (code !== undefined && /^[0-9A-Z]{5}$/.test(code))
    return new HistoryError(classes.find(([pattern]) => pattern.test(code))?.[1] ?? 'failed', code);
  if (/does not support SSL/.test(message))
    return new HistoryError(
      'tls',
      undefined,
      'the server offers none, so the user and the password were not tried; sslmode=disable in the URL goes without TLS',
    );
  if (/SSL connection/.test(message)) return new HistoryError('tls', undefined);
  if (/timeout/i.test(message)) return new HistoryError('timeout', undefined);
  if (/terminated|connection error|not queryable|after calling end/i.test(message))
    return new HistoryError('unreachable', undefined);
  return new HistoryError('failed', code);
}

/** Connects to exactly the checked address; the name is kept for the certificate. */
async function connection(target: HistoryTarget, deps: HistoryDeps): Promise<pg.PoolConfig> {
  const { host, port } = target.hosts[0]!;
  const { connectMs, statementMs } = timesOf(deps);
  const [address] = await deps.outbound.resolve(host, deps.tenant);
  return {
    host: address!.address,
    port,
    user: target.user,
    // A function, because the driver takes an empty password as none and looks for another.
    password: () => target.password,
    database: target.database,
    ssl:
      target.tls === 'off'
        ? false
        : {
            // An address has no server name; the driver then compares the certificate with the address.
            ...(isIP(host) ? {} : { servername: host }),
            rejectUnauthorized: target.tls === 'verified',
            ...(target.ca ? { ca: target.ca } : {}),
          },
    connectionTimeoutMillis: connectMs,
    query_timeout: statementMs,
    application_name: 'parley',
    keepAlive: true,
    types: { getTypeParser: (type: number) => readers[type] ?? String } as pg.CustomTypesConfig,
  };
}

/** The types that are asked for. Others are left as text: the driver's own readers may take minutes for a date. */
const readers: Record<number, (text: string) => unknown> = {
  16: (text) => text === 't',
  23: Number,
  701: Number,
};

/** What the driver would take from the environment of this process is left out. */
class Client extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config);
    const { connectionParameters } = this as unknown as { connectionParameters: object };
    Object.assign(connectionParameters, {
      options: undefined,
      replication: undefined,
      client_encoding: undefined,
      fallback_application_name: undefined,
    });
  }
}

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

/** `fields` are those of a message. */
const columnsOf = (fields: readonly string[]): string =>
  `${columns}, ${fields.includes('extras') ? 'extras' : 'NULL AS extras'}`;

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

/** A column without any value is sent as null: the others say how many rows there are. */
function columnOf(rows: readonly HistoryRecord[], column: string): unknown[] | null {
  const values = rows.map((row) => valueOf(row, column));
  return values.every((value) => value === null) ? null : values;
}

export async function openPostgres(target: HistoryTarget, deps: HistoryDeps): Promise<History> {
  const settings = await connection(target, deps).catch((error: unknown) => {
    throw translate(error);
  });
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
  const withExtras = extrasColumn(deps.seconds);
  const at = (table: string) => (target.schema === null ? table : `"${target.schema}".${table}`);

  async function run<R extends object>(sql: string, values: unknown[] = []): Promise<R[]> {
    try {
      return (await pool.query<R>(sql, values)).rows;
    } catch (error) {
      throw translate(error);
    }
  }

  async function transaction(statements: [sql: string, values: unknown[]][]): Promise<void> {
    if (statements.length === 1) return void (await run(...statements[0]!));
    const client = await pool.connect().catch((error: unknown) => {
      throw translate(error);
    });
    let broken = true;
    try {
      await client.query('BEGIN');
      for (const [sql, values] of statements) await client.query(sql, values);
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
    engine: 'postgres',
    writesAtOnce: 2,
    test: () => test(run, pool, target, at),
    write: (records, { rewrite = false } = {}) =>
      withExtras(records, (fieldsOf) =>
        transaction(
          byKind(records).map(([kind, rows]): [string, unknown[]] => {
            const { table, key } = shapes[kind];
            const fields = fieldsOf(kind);
            const sql = upsert(at(table), key, fields, rewrite ? '>=' : '>');
            return [sql, [env, ...fields.map((c) => columnOf(rows, c))]];
          }),
        ),
      ),
    async read(range) {
      const { before, after, up, limit } = bounds(range);
      const data = await withExtras([], (fieldsOf) =>
        run<MessageRow>(
          `SELECT ${columnsOf(fieldsOf('message'))} FROM ${at('parley_messages')}
           WHERE env = $1 AND conversation_id = $2 AND seq < $3 AND seq > $4 AND NOT hard ORDER BY seq ${up ? '' : 'DESC'} LIMIT $5`,
          [env, range.conversationId, before, after, limit + 1],
        ),
      );
      const page = data.slice(0, limit).map(record);
      return { data: up ? page.reverse() : page, hasMore: data.length > limit };
    },
    async get(id) {
      const [row] = await withExtras([], (fieldsOf) =>
        run<MessageRow>(
          `SELECT ${columnsOf(fieldsOf('message'))} FROM ${at('parley_messages')} WHERE env = $1 AND id = $2 AND NOT hard`,
          [env, id],
        ),
      );
      return row ? record(row) : null;
    },
    async erase({ userId, replacement, messages }) {
      const values = [env, userId, replacement];
      const goneOf = (fields: readonly string[]) =>
        `, text = NULL, reply_to = NULL, attachments = NULL, metadata = NULL, hard = true, deleted_at = coalesce(deleted_at, now()),
        revision = revision - revision % 4 + 2${fields.includes('extras') ? ', extras = NULL' : ''}`;
      const statementsOf = (fields: readonly string[]): [string, unknown[]][] => [
        [
          `UPDATE ${at('parley_messages')} SET sender_id = $3${messages === 'delete' ? goneOf(fields) : ''} WHERE env = $1 AND sender_id = $2`,
          values,
        ],
        [
          `UPDATE ${at('parley_members')} SET user_id = $3${messages === 'delete' ? ', removed = true' : ''} WHERE env = $1 AND user_id = $2`,
          values,
        ],
      ];
      // A change since may have written the member under the new name already.
      const doubled = `DELETE FROM ${at('parley_members')} m WHERE m.env = $1 AND m.user_id = $2 AND EXISTS (
        SELECT 1 FROM ${at('parley_members')} o WHERE o.env = $1 AND o.conversation_id = m.conversation_id AND o.user_id = $3)`;
      await withExtras([], (fieldsOf) => {
        const statements = statementsOf(fieldsOf('message'));
        return transaction(statements).catch((error: unknown) => {
          if (!(error instanceof HistoryError) || error.errorClass !== 'refused') throw error;
          return transaction([[doubled, values], ...statements]);
        });
      });
    },
    async count() {
      const [row] = await run<{ n: string }>(
        `SELECT count(*)::text AS n FROM ${at('parley_messages')} WHERE env = $1`,
        [env],
      );
      return Number(row!.n);
    },
    close: () => pool.end().catch(() => undefined),
  };
}

type Run = <R extends object>(sql: string, values?: unknown[]) => Promise<R[]>;

async function test(
  run: Run,
  pool: pg.Pool,
  target: HistoryTarget,
  at: (table: string) => string,
): Promise<HistoryReport> {
  const report = emptyReport('postgres');
  try {
    const started = performance.now();
    const [row] = await run<{ version: string; role: string; super: boolean }>(
      `SELECT current_setting('server_version') AS version, current_user AS role,
         (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS super`,
    );
    report.rttMs = Math.round((performance.now() - started) * 10) / 10;
    report.version = row!.version;
    report.role = row!.role;
    report.tls = { enabled: target.tls !== 'off', verified: target.tls === 'verified' };
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
    if (target.tls === 'unverified') report.warnings.push(sentences.unverified);
    if (target.tls === 'off') report.warnings.push(sentences.plain);
  } catch (error) {
    report.errors.push(translate(error).message);
  }
  report.ok = report.errors.length === 0;
  return report;
}

const definitions = (at: (table: string) => string): string[] => [
  `CREATE TABLE IF NOT EXISTS ${at('parley_meta')} (key text PRIMARY KEY, value text NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS ${at('parley_messages')} (env text NOT NULL, id text NOT NULL, conversation_id text NOT NULL, seq bigint NOT NULL,
     sender_id text, text text, reply_to text, attachments text, metadata text, version int NOT NULL, created_at timestamptz(3) NOT NULL,
     edited_at timestamptz(3), deleted_at timestamptz(3), hard boolean NOT NULL DEFAULT false, revision bigint NOT NULL, PRIMARY KEY (env, id))`,
  `CREATE INDEX IF NOT EXISTS parley_messages_place ON ${at('parley_messages')} (env, conversation_id, seq)`,
  `CREATE INDEX IF NOT EXISTS parley_messages_sender ON ${at('parley_messages')} (env, sender_id)`,
  `CREATE TABLE IF NOT EXISTS ${at('parley_conversations')} (env text NOT NULL, id text NOT NULL, type text NOT NULL, name text, metadata text,
     created_at timestamptz(3) NOT NULL, deleted_at timestamptz(3), revision bigint NOT NULL, PRIMARY KEY (env, id))`,
  `CREATE TABLE IF NOT EXISTS ${at('parley_members')} (env text NOT NULL, conversation_id text NOT NULL, user_id text NOT NULL, role text NOT NULL,
     removed boolean NOT NULL DEFAULT false, revision bigint NOT NULL, PRIMARY KEY (env, conversation_id, user_id))`,
  `CREATE INDEX IF NOT EXISTS parley_members_user ON ${at('parley_members')} (env, user_id)`,
];

/** What version 2 adds. */
const additions = (at: (table: string) => string): string[] =>
  Object.values(shapes).map(({ table }) => `ALTER TABLE ${at(table)} ADD COLUMN IF NOT EXISTS extras text`);

/** Runs as the admin: creates tables or adds what a newer version has, and a user that may only write and read them. */
export async function migratePostgres(
  target: HistoryTarget,
  deps: HistoryDeps,
  adminUrl: string,
): Promise<Migrated> {
  const client = new Client(
    await connection(target, deps).catch((error: unknown) => {
      throw translate(error);
    }),
  );
  client.on('error', () => undefined);
  const at = (table: string) => (target.schema === null ? table : `"${target.schema}".${table}`);
  try {
    await client.connect();
    if (target.schema !== null) await client.query(`CREATE SCHEMA IF NOT EXISTS "${target.schema}"`);
    for (const sql of definitions(at)) await client.query(sql);
    const meta = at('parley_meta');
    const old = await client.query<{ value: string }>(
      `SELECT value FROM ${meta} WHERE key = 'schema_version'`,
    );
    if (Number(old.rows[0]?.value ?? 0) < historySchemaVersion) {
      for (const sql of additions(at)) await client.query(sql);
      await client.query(
        `INSERT INTO ${meta} (key, value) VALUES ('schema_version', $1) ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
        [String(historySchemaVersion)],
      );
    }
    await client.query(
      `INSERT INTO ${meta} (key, value) VALUES ('database_id', $1) ON CONFLICT (key) DO NOTHING`,
      [hex(deps, 16)],
    );
    const name = writerName(deps);
    const password = passwordFor(deps);
    const { rows } = await client.query<{ db: string; schema: string }>(
      'SELECT current_database() AS db, current_schema() AS schema',
    );
    const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;
    const schema = quoted(target.schema ?? rows[0]!.schema);
    const tables = ['parley_meta', ...Object.values(shapes).map((s) => s.table)].map(at).join(', ');
    const grants = [
      `GRANT CONNECT ON DATABASE ${quoted(rows[0]!.db)} TO ${name}`,
      `GRANT USAGE ON SCHEMA ${schema} TO ${name}`,
      `GRANT SELECT, INSERT, UPDATE, DELETE ON ${tables} TO ${name}`,
    ];
    try {
      await client.query('BEGIN');
      // The password consists of letters and digits only.
      await client.query(`CREATE ROLE ${name} LOGIN PASSWORD '${password}'`);
      for (const sql of grants) await client.query(sql);
      await client.query('COMMIT');
      return { runtimeUrl: urlFor(adminUrl, name, password), notes: [`The user ${name} was made.`] };
    } catch (error) {
      const why = translate(error);
      if (why.errorClass !== 'permission') throw why;
      return {
        runtimeUrl: null,
        notes: [sentences.noUser, ...grants.map((sql) => sql.replaceAll(name, 'parley_writer'))],
      };
    }
  } catch (error) {
    throw translate(error);
  } finally {
    await client.end().catch(() => undefined);
  }
}
