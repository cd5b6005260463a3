import { Client, connection, tableIn, translate } from './postgres-connection.ts';
import { historySchemaVersion } from './port.ts';
import type { Migrated } from './port.ts';
import { hex, passwordFor, shapes, withoutUser, writerName } from './shared.ts';
import type { HistoryDeps } from './shared.ts';
import { urlFor } from './target.ts';
import type { HistoryTarget } from './target.ts';

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
  const client = new Client(await connection(target, deps));
  client.on('error', () => undefined);
  const at = tableIn(target);
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
      return withoutUser(grants, name);
    }
  } catch (error) {
    throw translate(error);
  } finally {
    await client.end().catch(() => undefined);
  }
}
