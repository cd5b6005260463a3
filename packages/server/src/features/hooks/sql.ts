import type { Hook, HookKind, HookStats } from '@parley/protocol';
import type { Queryable, Tx } from '../../platform/postgres/db.ts';
import { anyRow, firstRow, oneRow } from '../../platform/postgres/rows.ts';
import { signingSecrets } from '../sql/signing-secrets.ts';

/** Hooks change only after `nextVersion` (features/tenancy) locked the environment. */

export interface HookRow extends Hook {
  no: number;
}

const columns = `no, kind, url, timeout_ms AS "timeoutMs", on_failure AS "onFailure", edits, servers, types,
  created_at AS "createdAt", updated_at AS "updatedAt", failing_since AS "failingSince"`;

export const viewHook = ({ no: _, ...hook }: HookRow): Hook => hook;

export const secrets = signingSecrets('hook_secrets', 'hook');

export const findHooks = (db: Queryable, env: number): Promise<HookRow[]> =>
  db.query<HookRow>(`SELECT ${columns} FROM hooks WHERE env = $1 ORDER BY kind`, [env]);

export const findHook = (db: Queryable, env: number, kind: HookKind): Promise<HookRow | undefined> =>
  firstRow(db, `SELECT ${columns} FROM hooks WHERE env = $1 AND kind = $2`, [env, kind]);

export type HookSettings = Pick<
  Hook,
  'kind' | 'url' | 'timeoutMs' | 'onFailure' | 'edits' | 'servers' | 'types'
>;

/** A hook that is set again is believed to work. */
export const setHook = (tx: Tx, env: number, hook: HookSettings): Promise<HookRow> =>
  oneRow(
    tx,
    `INSERT INTO hooks (env, kind, url, timeout_ms, on_failure, edits, servers, types, created_at, updated_at)
     SELECT $1, $2, $3, $4, $5, $6, $7, $8, t, t FROM (SELECT clock_timestamp() AS t) x
     ON CONFLICT (env, kind) DO UPDATE SET url = excluded.url, timeout_ms = excluded.timeout_ms,
       on_failure = excluded.on_failure, edits = excluded.edits, servers = excluded.servers, types = excluded.types,
       updated_at = excluded.updated_at, failing_since = NULL
     RETURNING ${columns}`,
    [env, hook.kind, hook.url, hook.timeoutMs, hook.onFailure, hook.edits, hook.servers, hook.types],
  );

export async function deleteHook(tx: Tx, env: number, kind: HookKind): Promise<void> {
  await tx.query('DELETE FROM hooks WHERE env = $1 AND kind = $2', [env, kind]);
}

/** Returns whether this changed anything: of several processes that see the same, one tells of it. */
export const markFailing = (tx: Tx, env: number, hook: number, since: string): Promise<boolean> =>
  anyRow(
    tx,
    'UPDATE hooks SET failing_since = $3 WHERE no = $2 AND env = $1 AND failing_since IS NULL RETURNING 1',
    [env, hook, since],
  );

export const markWell = (tx: Tx, env: number, hook: number): Promise<boolean> =>
  anyRow(
    tx,
    'UPDATE hooks SET failing_since = NULL WHERE no = $2 AND env = $1 AND failing_since IS NOT NULL RETURNING 1',
    [env, hook],
  );

/** How many rows of the request log are looked through. */
const looked = 20_000;

export const hookStats = (db: Queryable, env: number, operation: string, since: string) =>
  oneRow<Omit<HookStats, 'since'>>(
    db,
    `SELECT count(*) AS calls, count(*) FILTER (WHERE failed) AS failures,
       count(*) FILTER (WHERE NOT failed AND code IS NULL) AS allowed,
       count(*) FILTER (WHERE NOT failed AND code = 'reject') AS rejected,
       count(*) FILTER (WHERE NOT failed AND code = 'rewrite') AS rewritten,
       percentile_disc(0.5) WITHIN GROUP (ORDER BY ms) AS "p50Ms", percentile_disc(0.99) WITHIN GROUP (ORDER BY ms) AS "p99Ms"
     FROM (SELECT * FROM request_log WHERE env = $1 AND at >= $3 ORDER BY at DESC, no DESC LIMIT ${looked}) l
     WHERE kind = 'hook' AND operation = $2`,
    [env, operation, since],
  );
