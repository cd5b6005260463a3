import type { DatabaseSlot } from '@parley/protocol';
import type { HistoryEngine, HistoryReport } from '../../platform/history/port.ts';
import { maskUrl } from '../../platform/history/target.ts';
import { consumers } from '../../log/sql/consumers.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { oneRow, oneValue } from '../../platform/postgres/rows.ts';
import type { Vault } from '../../platform/secrets.ts';
import { setListening } from '../tenancy/sql/environments.ts';
import { asideColumns, joinFaults } from './sql/faults.ts';

/** Statements about an environment's storage: its mode, its two slots, and what waits for the customer's database. */

export type SlotName = 'a' | 'b';
export type StorageMode = 'managed' | 'byo_db' | 'returning';
export type SinkStatus = 'healthy' | 'degraded' | 'failing';

/**
 * What is copied in the background. `fill` and `rewrite` write what our store holds into the active slot, `move`
 * writes what the previous slot holds, `return` brings back what only the customer's database has.
 */
export interface Copy {
  kind: 'fill' | 'rewrite' | 'move' | 'return';
  /** The copy that follows this one. */
  then?: 'fill';
  /** The conversation and the seq that the copy has reached. */
  conv: number;
  seq: number;
  done: number;
  /** Of a `return`: how many messages the customer's database no longer had. */
  missing?: number;
  total: number;
  startedAt: string;
  /** Transactions with a lower number may not have recorded their changes, so copying begins when they have ended. */
  seenXid?: number;
}

export interface StorageRow {
  env: number;
  mode: StorageMode;
  active: SlotName | null;
  previous: SlotName | null;
  hasCold: boolean;
  /** How many messages did not come back from the customer's database, because they were no longer there. */
  missing: number;
  copy: Copy | null;
  status: SinkStatus;
  lastSuccessAt: string | null;
  error: string | null;
}

export const storageColumns = `env, mode, active, previous, has_cold AS "hasCold", missing, copy, status, last_success_at AS "lastSuccessAt", error`;

const none = (env: number): StorageRow => ({
  env,
  mode: 'managed',
  active: null,
  previous: null,
  hasCold: false,
  missing: 0,
  copy: null,
  status: 'healthy',
  lastSuccessAt: null,
  error: null,
});

export async function storageOf(db: Queryable, env: number): Promise<StorageRow> {
  const [row] = await db.query<StorageRow>(`SELECT ${storageColumns} FROM storage WHERE env = $1`, [env]);
  return row ?? none(env);
}

/** `now` is by the store's clock. */
export type LockedStorage = StorageRow & { now: string };

/** Creates the row if there is none, and locks it, so that changes of one environment's storage wait for each other. */
export async function lockStorage(db: Queryable, env: number): Promise<LockedStorage> {
  await db.query('INSERT INTO storage (env) VALUES ($1) ON CONFLICT DO NOTHING', [env]);
  const [row] = await db.query<LockedStorage>(
    `SELECT ${storageColumns}, clock_timestamp()::timestamptz(3) AS now FROM storage WHERE env = $1 FOR UPDATE`,
    [env],
  );
  return row!;
}

export async function setMode(
  db: Queryable,
  env: number,
  change: {
    mode: StorageMode;
    copy: Copy | null;
    active?: SlotName;
    previous?: SlotName | null;
    missing?: number;
  },
): Promise<void> {
  await db.query(
    `UPDATE storage SET mode = $2, copy = $3, active = coalesce($4, active), previous = CASE WHEN $5 THEN $6 ELSE previous END,
       missing = $7, due_at = '-infinity', failures = 0 WHERE env = $1`,
    [
      env,
      change.mode,
      change.copy && JSON.stringify(change.copy),
      change.active ?? null,
      change.previous !== undefined,
      change.previous ?? null,
      change.missing ?? 0,
    ],
  );
  // A slot that is in use now does not wait with its erasures.
  await db.query(`UPDATE storage_slots SET erase_due_at = '-infinity' WHERE env = $1`, [env]);
  await setListening(db, env, consumers.sink.bit, change.mode !== 'managed');
}

export const setActive = (db: Queryable, env: number, slot: SlotName) =>
  db.query('UPDATE storage SET active = $2 WHERE env = $1', [env, slot]);

/** Lets everything that came back from the customer's database leave again when its time comes. */
export const leaveAgain = (db: Queryable, env: number) =>
  db.query('UPDATE sink_conversations SET cold_seq = 1, oldest_at = $2 WHERE env = $1 AND cold_seq > 0', [
    env,
    new Date(0),
  ]);

/** Removes what is noted for the customer's database, when nothing needs it any more. */
export async function forgetSink(db: Queryable, env: number): Promise<void> {
  for (const table of ['sink_log', 'sink_conversations', 'sink_refused'])
    await db.query(`DELETE FROM ${table} WHERE env = $1`, [env]);
}

/** How many messages there are to copy: all, or only those that the customer's database alone has. */
export const messagesOf = (db: Queryable, env: number): Promise<number> =>
  oneValue(db, 'SELECT coalesce(sum(message_count), 0)::float8 AS n FROM conversations WHERE env = $1', [
    env,
  ]);
export const coldOf = (db: Queryable, env: number): Promise<number> =>
  oneValue(
    db,
    `SELECT count(*)::float8 AS n FROM sink_conversations s JOIN messages m ON m.env = s.env AND m.conv = s.conv AND m.seq <= s.cold_seq
     WHERE s.env = $1 AND s.cold_seq > 0 AND m.id IS NULL AND NOT m.hard`,
    [env],
  );

/** Lets messages that did not come back be looked for in the customer's database again. */
export async function expectMissing(db: Queryable, env: number): Promise<void> {
  await db.query(
    `INSERT INTO sink_conversations (env, conv, cold_seq, oldest_at) SELECT DISTINCT env, conv, 1, to_timestamp(0) FROM messages
     WHERE env = $1 AND id IS NULL AND NOT hard ON CONFLICT DO NOTHING`,
    [env],
  );
  await db.query('UPDATE storage SET has_cold = true WHERE env = $1', [env]);
}

export interface SlotRow extends Omit<DatabaseSlot, 'url' | 'replicaUrl'> {
  slot: SlotName;
  url: Buffer;
  replicaUrl: Buffer | null;
  secrets: Buffer | null;
  shownUrl: string;
  shownReplicaUrl: string | null;
  databaseId: string | null;
  /** Why the last try to erase somebody there failed, if the slot is not in use. */
  eraseError: string | null;
  changedAt: string;
  /** Until when the slot is set aside, or `operator`; null if it is not. */
  aside: string | null;
  /** True if its database did harm within the last hour. */
  suspect: boolean;
}

const slotColumns = `x.slot, x.type, x.url, x.replica_url AS "replicaUrl", x.secrets, x.shown_url AS "shownUrl", x.shown_replica_url AS "shownReplicaUrl",
  x.schema, x.schema_version AS "schemaVersion", x.database_id AS "databaseId", x.erase_error AS "eraseError", x.last_test AS "lastTest", x.created_at AS "createdAt",
  x.changed_at AS "changedAt", ${asideColumns}`;

export const slotsOf = (db: Queryable, env: number): Promise<SlotRow[]> =>
  db.query<SlotRow>(
    `SELECT ${slotColumns} FROM storage_slots x ${joinFaults} WHERE x.env = $1 ORDER BY x.slot`,
    [env],
  );

/** The slots that may hold cold messages, the newest first; null if nothing can be cold. */
export async function coldSlots(db: Queryable, env: number): Promise<SlotRow[] | null> {
  const rows = await db.query<SlotRow & { active: SlotName }>(
    `SELECT s.active, ${slotColumns} FROM storage s JOIN storage_slots x ON x.env = s.env AND x.slot IN (s.active, s.previous)
     ${joinFaults} WHERE s.env = $1 AND s.has_cold`,
    [env],
  );
  if (rows.length === 0) return null;
  return rows.sort((a, b) => Number(b.slot === b.active) - Number(a.slot === a.active));
}

export const findSlot = async (db: Queryable, env: number, slot: SlotName): Promise<SlotRow | undefined> =>
  (await slotsOf(db, env)).find((row) => row.slot === slot);

/** The context that sealed values of a slot are bound to. */
export const slotContext = (env: number, slot: SlotName): string => `storage ${env} ${slot}`;

export interface NewSlot {
  type: HistoryEngine;
  url: string;
  replicaUrl: string | null;
  schema: string | null;
  secrets: SlotSecret[] | null;
}

/** A secret of an http endpoint; an old one is valid until `until`. */
export interface SlotSecret {
  secret: string;
  until: string | null;
}

export async function putSlot(
  db: Queryable,
  vault: Vault,
  env: number,
  slot: SlotName,
  given: NewSlot,
  now: string,
): Promise<void> {
  const seal = (text: string | null) => (text === null ? null : vault.seal(text, slotContext(env, slot)));
  await db.query(
    `INSERT INTO storage_slots (env, slot, type, url, replica_url, secrets, shown_url, shown_replica_url, schema, created_at, changed_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)
     ON CONFLICT (env, slot) DO UPDATE SET type = excluded.type, url = excluded.url, replica_url = excluded.replica_url, secrets = excluded.secrets,
       shown_url = excluded.shown_url, shown_replica_url = excluded.shown_replica_url, schema = excluded.schema, schema_version = NULL,
       database_id = NULL, last_test = NULL, erase_due_at = '-infinity', erase_failures = 0, erase_error = NULL, created_at = excluded.created_at, changed_at = excluded.changed_at`,
    [
      env,
      slot,
      given.type,
      seal(given.url),
      seal(given.replicaUrl),
      seal(given.secrets && JSON.stringify(given.secrets)),
      maskUrl(given.url),
      given.replicaUrl && maskUrl(given.replicaUrl),
      given.schema,
      now,
    ],
  );
}

export const putSecrets = (
  db: Queryable,
  vault: Vault,
  env: number,
  slot: SlotName,
  secrets: SlotSecret[],
  now: string,
) =>
  db.query('UPDATE storage_slots SET secrets = $3, changed_at = $4 WHERE env = $1 AND slot = $2', [
    env,
    slot,
    vault.seal(JSON.stringify(secrets), slotContext(env, slot)),
    now,
  ]);

/** Stores the result of a test, unless the slot was changed meanwhile. After one that passed, waiting erasures are tried at once. */
export async function putTest(
  db: Queryable,
  env: number,
  slot: SlotRow,
  report: HistoryReport,
  at: string,
): Promise<void> {
  const { ok, version, rttMs, errors, warnings } = report;
  const test = JSON.stringify({ ok, at, version, rttMs, errors, warnings });
  await db.query(
    `UPDATE storage_slots SET last_test = $3, schema_version = coalesce($4, schema_version), database_id = coalesce($5, database_id),
       erase_due_at = CASE WHEN $7 THEN '-infinity' ELSE erase_due_at END
     WHERE env = $1 AND slot = $2 AND changed_at = $6`,
    [env, slot.slot, test, report.schemaVersion, report.databaseId, slot.changedAt, ok],
  );
}

/** What waits for the customer's database. `now` is by the store's clock, as all times of the sink are. */
export interface Backlog {
  now: string;
  backlog: number;
  oldest: string | null;
  refused: number;
  erasures: number;
}

/** The backlog is counted up to `most`. */
export const backlogOf = (db: Queryable, env: number, most = 1_000_000): Promise<Backlog> =>
  oneRow(
    db,
    `SELECT clock_timestamp()::timestamptz(3) AS now, (SELECT count(*) FROM (SELECT 1 FROM sink_log WHERE env = $1 LIMIT $2) x)::float8 AS backlog,
       (SELECT at FROM sink_log WHERE env = $1 ORDER BY no LIMIT 1) AS oldest,
       (SELECT count(*) FROM sink_refused WHERE env = $1)::float8 AS refused,
       (SELECT count(*) FROM sink_erasures WHERE env = $1)::float8 AS erasures`,
    [env, most],
  );
