import { limits } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import { column, oneValue } from '../../platform/postgres/rows.ts';
import { payloadHours } from '../webhooks/schedule.ts';
import { longestDays } from '../webhooks/sql/payloads.ts';

/**
 * Rows that are removed by their age, and rows of environments that have ended: of tables that other folders own.
 * Rows are removed by place (ctid), because these tables have no key in common; no statement holds a place for longer
 * than itself.
 */

/** Drops days of clientMsgIds that are past their time. Returns how many. */
export const keepSentIds = (db: Queryable, now: Date | undefined, days: number): Promise<number> =>
  oneValue(db, 'SELECT keep_sent_ids(coalesce($1::timestamptz, now()), $2) AS n', [now, days]);

/** How many rows one statement removes at most. */
export const batch = 5_000;

/** @param rows a query for the places of expired rows, to which the limit is added. */
const remove = (db: Queryable, table: string, rows: string, values?: unknown[]): Promise<number> =>
  oneValue(
    db,
    `WITH gone AS (DELETE FROM ${table} WHERE ctid = ANY(ARRAY(${rows} LIMIT ${batch})) RETURNING 1)
         SELECT count(*) AS n FROM gone`,
    values,
  );

export const removeOlder = (
  db: Queryable,
  table: string,
  column: string,
  hours: number,
  now: Date | undefined,
): Promise<number> =>
  remove(
    db,
    table,
    `SELECT ctid FROM ${table} WHERE ${column} < least($1::timestamptz, now()) - $2 * interval '1 hour'`,
    [now, hours],
  );

/** @param hours for environments that have no time of their own. */
export const removeEvents = (db: Queryable, hours: number, now: Date | undefined): Promise<number> =>
  remove(
    db,
    'events',
    `SELECT x.ctid FROM environments e CROSS JOIN LATERAL (
       SELECT t.ctid FROM events t WHERE t.env + 0 = e.no
         AND t.created_at < least($1::timestamptz, now()) - coalesce(e.buffer_hours, $2::float8) * interval '1 hour' LIMIT ${batch}
     ) x`,
    [now, hours],
  );

/** Of a table with one row per hour, whose rows per day and per month stay. */
export const removeHours = (db: Queryable, table: string, now: Date | undefined): Promise<number> =>
  remove(
    db,
    table,
    `SELECT x.ctid FROM environments e CROSS JOIN LATERAL (
         SELECT c.ctid FROM ${table} c WHERE c.env = e.no AND c.step = 0
           AND c.at < date_trunc('day', least($1::timestamptz, now()), 'UTC') - interval '${limits.analyticsHoursKeptDays} days' LIMIT ${batch}
       ) x`,
    [now],
  );

/** A delivery that is still pending after this belongs to an environment that was suspended for weeks. */
const pendingDays = 30;

/** Removes deliveries that are too old for a replay. */
export const removeDeliveries = (db: Queryable): Promise<number> =>
  remove(
    db,
    'webhook_deliveries',
    `SELECT ctid FROM webhook_deliveries WHERE created_at < now() - interval '${limits.webhookReplayHours} hours'
       AND (status <> 'pending' OR created_at < now() - interval '${pendingDays} days'
         OR (SELECT w.no FROM webhook_endpoints w WHERE w.no = endpoint) IS NULL)`,
  );

/** If the environment is suspended meanwhile, payloads stay up to `longestDays`. */
export const removePayloads = (db: Queryable): Promise<number> =>
  remove(
    db,
    'webhook_payloads',
    `SELECT ctid FROM webhook_payloads p WHERE event_at < now() - interval '${payloadHours} hours'
       AND (event_at < now() - interval '${longestDays} days'
         OR NOT EXISTS (SELECT 1 FROM environments e WHERE e.no = p.env AND e.status = 'suspended'))`,
  );

/** The tables that carry the number of an environment. */
export const tenantTables = (db: Queryable, except: readonly string[]): Promise<string[]> =>
  column(
    db,
    `SELECT c.relname AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'env' AND NOT a.attisdropped
     WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relname <> ALL ($1) ORDER BY 1`,
    [except],
  );

/** Objects in our own storage stay until the sweep of media has removed them. */
const onlyWhere: Record<string, string> = { object_removals: 'AND storage > 0' };

/** `env + 0`: an index on env would be read as a whole for every piece. */
export const removePiece = (
  db: Queryable,
  table: string,
  envs: readonly number[],
  from: string,
  to: string,
): Promise<number> =>
  oneValue(
    db,
    `WITH gone AS (
             DELETE FROM "${table}" WHERE env + 0 = ANY($1) AND ctid >= $2::tid AND ctid < $3::tid ${onlyWhere[table] ?? ''} RETURNING 1
           ) SELECT count(*)::int AS n FROM gone`,
    [envs, from, to],
  );

/** How many pages of 8 kB a table has. */
export const pagesOf = (db: Queryable, table: string): Promise<number> =>
  oneValue(db, `SELECT (pg_relation_size($1::regclass) / current_setting('block_size')::int)::int AS pages`, [
    `"${table}"`,
  ]);
