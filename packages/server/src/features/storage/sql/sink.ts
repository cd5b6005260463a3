import type { HistoryError } from '../../../platform/history/port.ts';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { anyRow, column, firstRow, valuesOf } from '../../../platform/postgres/rows.ts';
import { storageColumns } from '../sql.ts';
import type { SinkStatus, StorageRow } from '../sql.ts';
import { mustErase } from './erasures.ts';

/** The sinks: which of them are due, whose turn it is, how it went. */

export const leaseMs = 10_000;
export const longestBackOffMs = 60_000;

/** SQL for how long a write can last: a connection and a transaction with several statements, each with its time-out. */
const lastWrite = `interval '60 seconds'`;

/** SQL that takes the lease for the process `$2`, or extends it. */
const takeLease = `owner = $2, owned_until = clock_timestamp() + interval '${leaseMs} milliseconds',
  taken_at = CASE WHEN s.owner = $2 OR s.owned_until = '-infinity' THEN s.taken_at ELSE clock_timestamp() END`;
/** SQL that is false while a late write of the process before could still undo an erasure. */
const mayErase = `s.taken_at < clock_timestamp() - ${lastWrite}`;

/**
 * SQL for whether conversations may have messages that are old enough to leave; checked once a minute. A time in the
 * future is from before the store's clock was set back.
 */
const mayPrune = (s: string) =>
  `(s.pruned_at NOT BETWEEN clock_timestamp() - interval '1 minute' AND clock_timestamp() AND (
     SELECT true FROM sink_conversations c WHERE c.env = ${s} AND c.oldest_at < clock_timestamp() - interval '24 hours' LIMIT 1))`;
const any = (table: string, s: string, more = '') =>
  `(SELECT true FROM ${table} x WHERE x.env = ${s}${more} LIMIT 1)`;

export const dueSinks = (db: Queryable, limit: number): Promise<{ no: number; id: string }[]> =>
  db.query<{ no: number; id: string }>(
    `SELECT e.no, e.id FROM storage s JOIN environments e ON e.no = s.env
       WHERE (s.mode <> 'managed' OR ${mustErase('s.env')}) AND s.owned_until < clock_timestamp()
         AND s.due_at NOT BETWEEN clock_timestamp() AND clock_timestamp() + interval '${longestBackOffMs} milliseconds' AND (s.copy IS NOT NULL OR s.status <> 'healthy' OR ${any('sink_log', 's.env')} OR ${mustErase('s.env')}
         OR ${any('sink_conversations', 's.env', ' AND x.want_seq IS NOT NULL')} OR ${mayPrune('s.env')})
       ORDER BY s.due_at LIMIT $1`,
    [limit],
  );

export interface ClaimedSink extends StorageRow {
  /** Whether users must be erased, messages must come back, and old messages may leave. */
  erasures: boolean;
  wanted: boolean;
  prune: boolean;
}

/** Takes the lease for the process; undefined if another one has it. */
export const claimSink = (db: Queryable, env: number, node: string): Promise<ClaimedSink | undefined> =>
  firstRow(
    db,
    `UPDATE storage s SET ${takeLease}
       WHERE s.env = $1 AND (s.owned_until < clock_timestamp() OR s.owner = $2)
       RETURNING ${storageColumns}, coalesce(${mustErase('$1')} AND ${mayErase}, false) AS erasures,
         coalesce(${any('sink_conversations', '$1', ' AND x.want_seq IS NOT NULL')}, false) AS wanted,
         coalesce(${mayPrune('$1')}, false) AS prune`,
    [env, node],
  );

/** Returns false if another process has the lease. */
export const renewLease = (db: Queryable, env: number, node: string): Promise<boolean> =>
  anyRow(
    db,
    `UPDATE storage SET owned_until = clock_timestamp() + interval '${leaseMs} milliseconds' WHERE env = $1 AND owner = $2 RETURNING env`,
    [env, node],
  );

export const releaseLease = (db: Queryable, env: number, node: string) =>
  db.query(`UPDATE storage SET owned_until = '-infinity' WHERE env = $1 AND owner = $2`, [env, node]);

export interface OwnedStorage extends Pick<StorageRow, 'mode' | 'copy' | 'status'> {
  since: string | null;
  failures: number;
  errorClass: string | null;
}

/** Locks the environment's row; undefined if the process no longer has the lease. */
export const lockOwned = (tx: Queryable, env: number, node: string): Promise<OwnedStorage | undefined> =>
  firstRow(
    tx,
    `SELECT mode, copy, status, since, failures, error_class AS "errorClass" FROM storage WHERE env = $1 AND owner = $2 FOR NO KEY UPDATE`,
    [env, node],
  );

export const setState = (
  tx: Queryable,
  env: number,
  state: {
    status: SinkStatus;
    since: string | null;
    failures: number;
    dueAt: string;
    failure: HistoryError | null;
    now: string;
  },
) =>
  tx.query(
    `UPDATE storage SET status = $2, since = $3, failures = $4, due_at = $5, error = $6, error_class = $7,
           last_success_at = CASE WHEN $8 THEN last_success_at ELSE $9::timestamptz END WHERE env = $1`,
    [
      env,
      ...valuesOf(state, 'status', 'since', 'failures', 'dueAt'),
      state.failure?.message ?? null,
      state.failure?.errorClass ?? null,
      state.failure !== null,
      state.now,
    ],
  );

/** A change that the customer's database has not confirmed yet. */
export interface LogRow {
  no: number;
  conv: number;
  seq: number;
  message: number | null;
  at: string;
}

export const readLog = (db: Queryable, env: number, after: number, limit: number): Promise<LogRow[]> =>
  db.query<LogRow>(
    'SELECT no, conv, seq, message, at FROM sink_log WHERE env = $1 AND no > $2 ORDER BY no LIMIT $3',
    [env, after, limit],
  );

/** Conversations with confirmed messages that are older than this. */
export const oldConversations = (
  db: Queryable,
  env: number,
  olderMs: number,
  limit: number,
): Promise<number[]> =>
  column(
    db,
    `SELECT conv FROM sink_conversations WHERE env = $1 AND oldest_at < clock_timestamp() - $2 * interval '1 millisecond'
     ORDER BY oldest_at LIMIT $3`,
    [env, olderMs, limit],
  );

/** Takes messages out of our store. Returns how many it looked at; null if the conversation is locked. */
export async function coolMessages(
  tx: Queryable,
  env: number,
  conv: number,
  olderMs: number,
  most: number,
): Promise<number | null> {
  await tx.query('UPDATE storage SET has_cold = true WHERE env = $1 AND NOT has_cold', [env]);
  const [row] = await tx.query<{ looked: number | null }>(
    `SELECT cool_messages($1, $2, clock_timestamp() - $3 * interval '1 millisecond', $4) AS looked`,
    [env, conv, olderMs, most],
  );
  return row!.looked;
}

export const markPruned = (db: Queryable, env: number, more: boolean) =>
  db.query(
    `UPDATE storage SET pruned_at = CASE WHEN $2 THEN '-infinity' ELSE clock_timestamp() END WHERE env = $1`,
    [env, more],
  );

/** All sinks in use; the backlog of one is counted up to `most`. */
export const allSinks = (
  db: Queryable,
  most: number,
): Promise<{ status: SinkStatus; now: string; oldest: string | null; backlog: number; refused: number }[]> =>
  db.query(
    `SELECT s.status, clock_timestamp()::timestamptz(3) AS now, (SELECT at FROM sink_log l WHERE l.env = s.env ORDER BY no LIMIT 1) AS oldest,
         (SELECT count(*) FROM (SELECT 1 FROM sink_log l WHERE l.env = s.env LIMIT $1) x)::float8 AS backlog,
         (SELECT count(*) FROM sink_refused r WHERE r.env = s.env)::float8 AS refused
       FROM storage s WHERE s.mode <> 'managed'`,
    [most],
  );
