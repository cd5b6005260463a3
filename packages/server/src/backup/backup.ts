import { createReadStream } from 'node:fs';
import { mkdir, mkdtemp, open, readdir, readFile, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import pg from 'pg';
import type { Logger } from '../platform/logging.ts';
import type { ConnectionSettings } from '../platform/postgres/db.ts';
import { startEmbeddedPostgres } from '../platform/postgres/embedded/index.ts';
import { migrate, readSchema } from '../platform/postgres/migrate.ts';
import { keyFile, previousKeyFile } from '../platform/secrets.ts';
import { readLines, writeLines } from './file.ts';

/**
 * Everything that a service stores, in one file: the rows as they were at one moment, read in a single transaction
 * while the service runs, and the uploaded files and the master key from the data directory.
 *
 * The first letter of a line in the file says what it is: H the header; T a table, and R some of its rows as a JSON
 * array; S the positions of the sequences; F a file of the data directory, and D a part of it in base64; E the end,
 * with the counts.
 */

const rowsPerLine = 500;
const bytesPerLine = 768 * 1024;
const mediaDirectory = 'media';

/** Left out: tables that the program itself fills in every store, and the log of requests. */
const leftOut = ['schema_migrations', 'schema_functions', 'request_log'];
const tablesSql = `SELECT c.relname AS name FROM pg_class c
  WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace AND c.relname <> ALL ($1) ORDER BY 1`;

interface Head {
  createdAt: string;
  /** The applied migrations, which define the schema of the store. */
  migrations: string[];
}

export interface BackupCounts {
  rows: number;
  files: number;
  /** True if the file contains the master key, so that anybody who has the file can read every secret in it. */
  masterKey: boolean;
}

const migrationNames = async (): Promise<string[]> => (await readSchema()).migrations.map(({ name }) => name);

async function connected<T>(
  connection: ConnectionSettings,
  run: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ ...connection, application_name: 'parley backup' });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await run(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

export async function backUp(options: {
  connection: ConnectionSettings;
  dataDir: string;
  file: string;
  passphrase: string | undefined;
}): Promise<BackupCounts> {
  const counts: BackupCounts = { rows: 0, files: 0, masterKey: false };
  await connected(options.connection, async (client) => {
    const lines = contents(client, options.dataDir, counts);
    try {
      await writeLines(options.file, options.passphrase, lines);
    } catch (error) {
      // An incomplete file is no backup, so it is removed. A file that existed before is not ours.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') await rm(options.file, { force: true });
      throw error;
    }
  });
  return counts;
}

async function* contents(client: pg.Client, dataDir: string, counts: BackupCounts): AsyncGenerator<string> {
  const head: Head = { createdAt: new Date().toISOString(), migrations: await migrationNames() };
  yield `H${JSON.stringify(head)}`;
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
  await client.query('SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0');
  const { rows: tables } = await client.query<{ name: string }>(tablesSql, [leftOut]);
  for (const { name } of tables) {
    yield `T${name}`;
    await client.query(
      `DECLARE kept NO SCROLL CURSOR FOR SELECT to_jsonb(t)::text AS row FROM ${pg.escapeIdentifier(name)} t`,
    );
    for (;;) {
      const { rows } = await client.query<{ row: string }>(`FETCH ${rowsPerLine} FROM kept`);
      if (rows.length === 0) break;
      counts.rows += rows.length;
      yield `R[${rows.map(({ row }) => row).join(',')}]`;
    }
    await client.query('CLOSE kept');
  }
  const { rows: sequences } = await client.query<{ name: string; value: string | null }>(
    `SELECT sequencename AS name, last_value::text AS value FROM pg_sequences WHERE schemaname = 'public'`,
  );
  yield `S${JSON.stringify(sequences)}`;
  await client.query('COMMIT');
  for (const path of await filesIn(dataDir)) {
    // A file that the clean-up has removed meanwhile is not needed.
    const file = await open(join(dataDir, path)).catch(() => undefined);
    if (!file) continue;
    counts.files++;
    counts.masterKey ||= path === keyFile;
    yield `F${JSON.stringify(path)}`;
    const stream = createReadStream('', { fd: file, highWaterMark: bytesPerLine });
    for await (const part of stream as AsyncIterable<Buffer>) yield `D${part.toString('base64')}`;
  }
  yield `E${JSON.stringify(counts)}`;
}

/** The files of the data directory that do not belong to PostgreSQL, with a slash between the parts of a path. */
async function filesIn(dataDir: string): Promise<string[]> {
  const media = await readdir(join(dataDir, mediaDirectory), { recursive: true, withFileTypes: true }).catch(
    () => [],
  );
  const found = media
    .filter((entry) => entry.isFile())
    .map((entry) => relative(dataDir, join(entry.parentPath, entry.name)).split(sep).join('/'));
  // While the master key is rotated there are two.
  const keys = [];
  for (const name of [keyFile, previousKeyFile])
    if (await stat(join(dataDir, name)).catch(() => undefined)) keys.push(name);
  return [...keys, ...found];
}

/** Restores into a data directory that does not exist yet, or is empty; it appears complete or not at all. */
export async function restore(options: {
  dataDir: string;
  file: string;
  passphrase: string | undefined;
  logger: Logger;
}): Promise<BackupCounts> {
  const dataDir = resolve(options.dataDir);
  const there = await readdir(dataDir).catch(() => []);
  if (there.length > 0)
    throw new Error(
      `${dataDir} is not empty. Restore into a new directory: set CHAT_DATA_DIR, or move this one away.`,
    );
  await mkdir(dirname(dataDir), { recursive: true });
  const directory = await mkdtemp(`${dataDir}.restoring-`);
  try {
    const postgres = await startEmbeddedPostgres({
      dataDir: directory,
      log: (line) => options.logger.debug({ part: 'postgres' }, line),
    });
    let counts: BackupCounts;
    try {
      await migrate(postgres.connection);
      counts = await connected(postgres.connection, (client) =>
        fill(client, directory, readLines(options.file, options.passphrase)),
      );
    } finally {
      await postgres.stop();
    }
    await rmdir(dataDir).catch(() => undefined);
    await rename(directory, dataDir);
    return counts;
  } catch (error) {
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
    throw error;
  }
}

async function fill(
  client: pg.Client,
  directory: string,
  lines: AsyncIterable<string>,
): Promise<BackupCounts> {
  const counts: BackupCounts = { rows: 0, files: 0, masterKey: false };
  let table = '';
  let file: Awaited<ReturnType<typeof open>> | undefined;
  let end: BackupCounts | undefined;
  await client.query('BEGIN');
  // Rows come in the order of their tables, so foreign keys are not checked meanwhile.
  await client.query('SET LOCAL session_replication_role = replica');
  for await (const line of lines) {
    const [kind, rest] = [line[0], line.slice(1)];
    if (kind === 'H') await checkForm(JSON.parse(rest) as Head);
    else if (kind === 'T') {
      table = pg.escapeIdentifier(rest);
      await client.query(`DELETE FROM ${table}`);
    } else if (kind === 'R') {
      const { rowCount } = await client.query(
        `INSERT INTO ${table} OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::${table}, $1::json)`,
        [rest],
      );
      counts.rows += rowCount ?? 0;
    } else if (kind === 'S')
      for (const { name, value } of JSON.parse(rest) as { name: string; value: string | null }[])
        if (value !== null)
          await client.query('SELECT setval($1::regclass, $2)', [pg.escapeIdentifier(name), value]);
        else await client.query(`ALTER SEQUENCE ${pg.escapeIdentifier(name)} RESTART`);
    else if (kind === 'F') {
      await file?.close();
      file = await create(directory, JSON.parse(rest) as string);
      counts.files++;
      counts.masterKey ||= JSON.parse(rest) === keyFile;
    } else if (kind === 'D') await file!.write(Buffer.from(rest, 'base64'));
    else if (kind === 'E') end = JSON.parse(rest) as BackupCounts;
  }
  await file?.close();
  if (JSON.stringify(end) !== JSON.stringify(counts)) throw new Error('The backup is not whole.');
  await client.query('SELECT begin_epoch(store_place(), NULL)');
  await client.query('COMMIT');
  return counts;
}

async function checkForm({ createdAt, migrations }: Head): Promise<void> {
  const ours = await migrationNames();
  if (migrations.join() === ours.join()) return;
  throw new Error(
    `The backup of ${createdAt} was made by another version of Parley. Restore it with that version, and upgrade then.`,
  );
}

async function create(directory: string, path: string) {
  const target = resolve(directory, path);
  if (path !== keyFile && !target.startsWith(join(directory, mediaDirectory) + sep))
    throw new Error(`The backup names a file that is not its own: ${path}`);
  await mkdir(dirname(target), { recursive: true, mode: 0o700 });
  return open(target, 'wx', 0o600);
}

/**
 * Read from the file that PARLEY_BACKUP_PASSPHRASE_FILE names, or from the variable itself; never from the command
 * line, which others can see.
 */
export async function passphraseFrom(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const path = env['PARLEY_BACKUP_PASSPHRASE_FILE'];
  const text = path ? (await readFile(path, 'utf8')).trim() : env['PARLEY_BACKUP_PASSPHRASE'];
  if (text === '') throw new Error('The passphrase is empty.');
  return text;
}
