import { connect } from 'node:net';
import mysql from 'mysql2/promise';
import type { ConnectionOptions, Pool, RowDataPacket } from 'mysql2/promise';
import { commonError, HistoryError, historySchemaVersion } from './port.ts';
import type { History, HistoryErrorClass, HistoryReport, MessageRecord, Migrated } from './port.ts';
import { relational } from './relational.ts';
import type { Statement } from './relational.ts';
import {
  examine,
  hex,
  maxConnections,
  passwordFor,
  readMeta,
  sentences,
  shapes,
  timesOf,
  valueOf,
  withoutUser,
  writerName,
} from './shared.ts';
import type { HistoryDeps, Times } from './shared.ts';
import { urlFor } from './target.ts';
import type { HistoryTarget } from './target.ts';

const classes: [numbers: number[], HistoryErrorClass][] = [
  [[1044, 1045, 1049, 1698, 1251], 'authentication'],
  [[1142, 1143, 1227, 1370, 1410], 'permission'],
  [[1146, 1054], 'schema'],
  [[1048, 1062, 1118, 1153, 1264, 1265, 1292, 1366, 1406, 1138, 3140, 3988, 4025], 'refused'],
  [[1205, 1213, 1040, 1053, 1203, 1226, 1290, 1317, 1836], 'overloaded'],
  [[3024, 1969, 1028], 'timeout'],
];

function translate(error: unknown): HistoryError {
  const common = commonError(error);
  if (common) return common;
  const { errno, code, message = '' } = error as { errno?: number; code?: string; message?: string };
  if (errno !== undefined && errno >= 1000)
    return new HistoryError(classes.find(([numbers]) => numbers.includes(errno))?.[1] ?? 'failed', errno);
  if (code === 'HANDSHAKE_NO_SSL_SUPPORT')
    return new HistoryError(
      'tls',
      code,
      'the server offers none, so the user and the password were not tried; sslmode=disable in the URL goes without TLS',
    );
  if (code === 'PROTOCOL_SEQUENCE_TIMEOUT' || /timeout/i.test(message))
    return new HistoryError('timeout', undefined);
  if (/closed|Queue limit/i.test(message)) return new HistoryError('unreachable', undefined);
  return new HistoryError('failed', code);
}

/** Connects to exactly the checked address; the name is kept for the certificate. */
async function connection(target: HistoryTarget, deps: HistoryDeps): Promise<ConnectionOptions> {
  const { host, port } = target.hosts[0]!;
  const [address] = await deps.outbound.resolve(host, deps.tenant);
  return {
    host,
    port,
    user: target.user,
    password: target.password,
    database: target.database,
    stream: () => connect({ host: address!.address, port }).setNoDelay(true),
    ...(target.tls === 'off'
      ? {}
      : {
          ssl: {
            rejectUnauthorized: target.tls === 'verified',
            verifyIdentity: target.tls === 'verified',
            ...(target.ca ? { ca: target.ca } : {}),
          },
        }),
    connectTimeout: timesOf(deps).connectMs,
    charset: 'utf8mb4',
    timezone: 'Z',
    dateStrings: true,
    supportBigNumbers: true,
    multipleStatements: false,
    // Rows are read without code that is made of what the server calls its columns.
    disableEval: true,
    flags: ['-LOCAL_FILES'],
  };
}

const time = (column: string) => `DATE_FORMAT(${column}, '%Y-%m-%dT%H:%i:%s.%f')`;
const columns = `id, conversation_id AS conversationId, seq, sender_id AS senderId, text, reply_to AS replyTo, attachments, metadata, version,
  ${time('created_at')} AS createdAt, ${time('edited_at')} AS editedAt, ${time('deleted_at')} AS deletedAt, hard, revision`;

const isTime = (column: string) => column.endsWith('_at');
const stored = (column: string, value: unknown): string | number | boolean | null =>
  isTime(column) && typeof value === 'string'
    ? value.replace('T', ' ').replace('Z', '')
    : (value as string | number | boolean | null);

/** MySQL assigns from left to right, so the revision, which decides about the other columns, comes last. */
function upsert(table: string, key: readonly string[], fields: readonly string[], rewrite: boolean): string {
  const newer = `VALUES(revision) ${rewrite ? '>=' : '>'} revision`;
  const others = fields.filter((c) => !key.includes(c) && c !== 'revision');
  return `INSERT INTO ${table} (env, ${fields.join(', ')}) VALUES ?
    ON DUPLICATE KEY UPDATE ${others.map((c) => `${c} = IF(${newer}, VALUES(${c}), ${c})`).join(', ')}, revision = GREATEST(revision, VALUES(revision))`;
}

interface MessageRow extends RowDataPacket {
  createdAt: string;
  editedAt: string | null;
  deletedAt: string | null;
  hard: number;
}

const milliseconds = (text: string | null) => (text === null ? null : `${text.slice(0, 23)}Z`);
const record = (row: MessageRow): MessageRecord => ({
  ...(row as unknown as MessageRecord),
  kind: 'message',
  seq: Number(row['seq']),
  revision: Number(row['revision']),
  createdAt: milliseconds(row.createdAt)!,
  editedAt: milliseconds(row.editedAt),
  deletedAt: milliseconds(row.deletedAt),
  hard: Boolean(row.hard),
});

/**
 * Each statement commits by itself, strict mode, and backslashes as the driver writes them, whatever the server's default is. The server also ends what
 * takes too long, because it does not notice that the connection is gone: MariaDB any statement, MySQL what reads or
 * waits for a lock.
 */
const session = ({ statementMs }: Times) =>
  `SET SESSION autocommit = 1, sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE', time_zone = '+00:00', innodb_lock_wait_timeout = 5,
    lock_wait_timeout = ${Math.ceil(statementMs / 1_000)} /*M!100101 , max_statement_time = ${statementMs / 1_000} */ /*!50708 , max_execution_time = ${statementMs} */`;

export async function openMysql(target: HistoryTarget, deps: HistoryDeps): Promise<History> {
  const settings = await connection(target, deps).catch((error: unknown) => {
    throw translate(error);
  });
  const times = timesOf(deps);
  const pool: Pool = mysql.createPool({
    ...settings,
    connectionLimit: maxConnections,
    // Those beyond it are closed within a second, the others when they are idle; if it were the limit, none would be.
    maxIdle: maxConnections - 1,
    idleTimeout: times.idleMs,
    queueLimit: 1_000,
  });
  const { env } = deps;
  const at = (table: string) => (target.schema === null ? table : `\`${target.schema}\`.${table}`);
  const prepared = new WeakSet<object>();

  async function using<T>(work: (run: Run) => Promise<T>): Promise<T> {
    let connected: Awaited<ReturnType<Pool['getConnection']>> | undefined;
    let broken = true;
    try {
      connected = await pool.getConnection();
      const held = connected;
      const run: Run = async (sql, values = []) =>
        (await held.query({ sql, values, timeout: times.statementMs }))[0] as never;
      if (!prepared.has(held.connection)) {
        await run(session(times));
        prepared.add(held.connection);
      }
      const result = await work(run);
      broken = false;
      return result;
    } catch (error) {
      const translated = translate(error);
      // After an answer the connection can be reused; after a time-out it cannot.
      broken = ['unreachable', 'timeout', 'failed', 'overloaded'].includes(translated.errorClass);
      throw translated;
    } finally {
      if (broken) connected?.destroy();
      else connected?.release();
    }
  }

  const transaction = (statements: readonly Statement[]): Promise<void> =>
    using(async (run) => {
      if (statements.length === 1) return void (await run(...statements[0]!));
      await run('START TRANSACTION');
      try {
        for (const [sql, values] of statements) await run(sql, values);
        await run('COMMIT');
      } catch (error) {
        await run('ROLLBACK').catch(() => undefined);
        throw error;
      }
    });

  return {
    writesAtOnce: 1,
    test: () => test(using, target, at),
    ...relational<MessageRow>(deps, {
      columns,
      record,
      at,
      now: 'UTC_TIMESTAMP(3)',
      upsert: (kind, fields, rows, rewrite) => [
        upsert(at(shapes[kind].table), shapes[kind].key, fields, rewrite),
        [rows.map((row) => [env, ...fields.map((c) => stored(c, valueOf(row, c)))])],
      ],
      deletePairs: (table) => `DELETE m FROM ${table} m JOIN ${table} o`,
      run: (...statement) => using((run) => run<MessageRow>(...statement)),
      transaction,
    }),
    close: () => pool.end().catch(() => undefined),
  };
}

type Run = <R extends RowDataPacket>(sql: string, values?: unknown[]) => Promise<R[]>;

const test = (
  using: <T>(work: (run: Run) => Promise<T>) => Promise<T>,
  target: HistoryTarget,
  at: (table: string) => string,
): Promise<HistoryReport> =>
  examine(target, translate, (report, first) =>
    using(async (run) => {
      const [row] = await first(() =>
        run<RowDataPacket>('SELECT version() AS version, current_user() AS role'),
      );
      report.version = String(row!['version']);
      report.role = String(row!['role']);
      // From "GRANT SELECT, INSERT ON `db`.`table` TO …" only the part between GRANT and TO is shown, so no password
      // hash is.
      const shown = await run<RowDataPacket>('SHOW GRANTS');
      report.grants = shown
        .map((line) => String(Object.values(line)[0]).replace(/^GRANT (.*) TO .*$/s, '$1'))
        .filter((g) => !g.startsWith('USAGE'));
      if (report.grants.some((grant) => /\bDROP\b|ALL PRIVILEGES/.test(grant)))
        report.warnings.push('The user can DROP the tables.');
      const schema = target.schema ?? target.database;
      const there = await run<RowDataPacket>(
        `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = ? AND table_name LIKE 'parley\\_%'`,
        [schema],
      );
      const names = new Set(there.map((t) => String(t['name'])));
      if (['parley_meta', ...Object.values(shapes).map((s) => s.table)].some((name) => !names.has(name)))
        report.errors.push(sentences.noTables);
      else {
        const meta = await run<RowDataPacket>(`SELECT name AS \`key\`, value FROM ${at('parley_meta')}`);
        readMeta(report, meta as unknown as { key: string; value: string }[]);
        // Whether the user may write is tested with a statement that matches no row.
        for (const [what, sql] of [
          [
            'INSERT',
            `INSERT INTO ${at('parley_messages')} SELECT * FROM ${at('parley_messages')} WHERE 1 = 0`,
          ],
          ['UPDATE', `UPDATE ${at('parley_messages')} SET revision = 0 WHERE 1 = 0`],
        ] as const)
          await run(sql).catch((error: unknown) => {
            if (translate(error).errorClass !== 'permission') throw error;
            report.errors.push(`The user lacks ${what} on the tables.`);
          });
      }
    }),
  );

const id = 'varchar(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';
const definitions = (at: (table: string) => string): string[] => [
  `CREATE TABLE IF NOT EXISTS ${at('parley_meta')} (name ${id} PRIMARY KEY, value text NOT NULL) ENGINE = InnoDB`,
  `CREATE TABLE IF NOT EXISTS ${at('parley_messages')} (env ${id} NOT NULL, id ${id} NOT NULL, conversation_id ${id} NOT NULL, seq bigint NOT NULL,
     sender_id ${id}, text mediumtext, reply_to ${id}, attachments mediumtext, metadata mediumtext, version int NOT NULL,
     created_at datetime(3) NOT NULL, edited_at datetime(3), deleted_at datetime(3), hard boolean NOT NULL DEFAULT 0, revision bigint NOT NULL,
     PRIMARY KEY (env, id), KEY parley_messages_place (env, conversation_id, seq), KEY parley_messages_sender (env, sender_id))
     ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin`,
  `CREATE TABLE IF NOT EXISTS ${at('parley_conversations')} (env ${id} NOT NULL, id ${id} NOT NULL, type varchar(20) NOT NULL, name text, metadata mediumtext,
     created_at datetime(3) NOT NULL, deleted_at datetime(3), revision bigint NOT NULL, PRIMARY KEY (env, id))
     ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin`,
  `CREATE TABLE IF NOT EXISTS ${at('parley_members')} (env ${id} NOT NULL, conversation_id ${id} NOT NULL, user_id ${id} NOT NULL, role varchar(20) NOT NULL,
     removed boolean NOT NULL DEFAULT 0, revision bigint NOT NULL, PRIMARY KEY (env, conversation_id, user_id), KEY parley_members_user (env, user_id))
     ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin`,
];

/** What version 2 adds. MySQL has no IF NOT EXISTS for columns: an error says that it is there. */
const additions = (at: (table: string) => string): string[] =>
  Object.values(shapes).map(({ table }) => `ALTER TABLE ${at(table)} ADD COLUMN extras mediumtext`);
const columnThere = 1060;

/** Runs as the admin: creates tables or adds what a newer version has, and a user that may only write and read them. */
export async function migrateMysql(
  target: HistoryTarget,
  deps: HistoryDeps,
  adminUrl: string,
): Promise<Migrated> {
  const at = (table: string) => (target.schema === null ? table : `\`${target.schema}\`.${table}`);
  let admin: Awaited<ReturnType<typeof mysql.createConnection>> | undefined;
  try {
    admin = await mysql.createConnection(await connection(target, deps));
    admin.on('error', () => undefined);
    const run: Run = async (sql, values = []) =>
      (await admin!.query({ sql, values, timeout: timesOf(deps).statementMs }))[0] as never;
    await run(session(timesOf(deps)));
    if (target.schema !== null) await run(`CREATE DATABASE IF NOT EXISTS \`${target.schema}\``);
    for (const sql of definitions(at)) await run(sql);
    const meta = at('parley_meta');
    const [old] = await run<RowDataPacket>(`SELECT value FROM ${meta} WHERE name = 'schema_version'`);
    if (Number(old?.['value'] ?? 0) < historySchemaVersion) {
      for (const sql of additions(at))
        await run(sql).catch((error: unknown) => {
          if ((error as { errno?: number }).errno !== columnThere) throw error;
        });
      await run(`REPLACE INTO ${meta} (name, value) VALUES ('schema_version', ?)`, [
        String(historySchemaVersion),
      ]);
    }
    await run(`INSERT IGNORE INTO ${meta} (name, value) VALUES ('database_id', ?)`, [hex(deps, 16)]);
    const name = writerName(deps);
    const password = passwordFor(deps);
    const grants = ['parley_meta', ...Object.values(shapes).map((s) => s.table)].map(
      (table) =>
        `GRANT SELECT, INSERT, UPDATE, DELETE ON \`${target.schema ?? target.database}\`.${table} TO '${name}'@'%'`,
    );
    try {
      await run(`CREATE USER '${name}'@'%' IDENTIFIED BY '${password}'`);
      for (const sql of grants) await run(sql);
      return { runtimeUrl: urlFor(adminUrl, name, password), notes: [`The user ${name} was made.`] };
    } catch (error) {
      const why = translate(error);
      if (!['permission', 'authentication'].includes(why.errorClass)) throw why;
      return withoutUser(grants, name);
    }
  } catch (error) {
    throw translate(error);
  } finally {
    admin?.destroy();
  }
}
