import type { AuditEntry } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import { anyRow, firstValue } from '../../platform/postgres/rows.ts';

/** `org` is null if the entry concerns an environment, whose organization it then is. */
type NewEntry = [
  id: string,
  env: number | null,
  org: number | null,
  actor: string,
  action: string,
  target: string | null,
  user: number | null,
  ip: string | null,
  requestId: string,
  changes: string,
];

export const insertEntry = (tx: Queryable, entry: NewEntry) =>
  tx.query(
    `INSERT INTO audit (id, env, org, actor, action, target, usr, ip, request_id, changes)
     VALUES ($1, $2, coalesce($3, (SELECT org FROM environments WHERE no = $2)), $4, $5, $6, $7, $8, $9, $10)`,
    entry,
  );

export type AuditRow = AuditEntry & { no: number };

export interface EntryFilter {
  /** Restricts the entries to the account's organizations; null for none of it. */
  account: number | null;
  env: number | undefined;
  /** A second environment that the caller asks for. */
  listed?: number;
  action: string | undefined;
  actor: string | undefined;
}

/** The entries before the given one, newest first. */
export function listEntries(
  db: Queryable,
  filter: EntryFilter,
  before: number | null,
  limit: number,
): Promise<AuditRow[]> {
  const conditions = (
    [
      ['a.org IN (SELECT org FROM organization_accounts WHERE account = $)', filter.account],
      ['a.env = $', filter.env],
      ['a.env = $', filter.listed],
      ['a.action = $', filter.action],
      ['a.actor = $', filter.actor],
      ['a.no < $', before],
    ] as const
  ).filter(([, value]) => value !== undefined && value !== null);
  const text = conditions.map(([condition], i) => condition.replace('$', `$${i + 2}`)).join(' AND ');
  return db.query<AuditRow>(
    `SELECT a.no, a.id, a.created_at AS at, o.id AS "organizationId", e.id AS "environmentId", a.actor, a.action,
       coalesce(u.id, a.target) AS target, a.ip, a.request_id AS "requestId", a.changes
     FROM audit a JOIN organizations o ON o.no = a.org LEFT JOIN environments e ON e.no = a.env
     LEFT JOIN users u ON u.env = a.env AND u.no = a.usr
     ${text && `WHERE ${text}`} ORDER BY a.no DESC LIMIT $1`,
    [limit, ...conditions.map(([, value]) => value)],
  );
}

/** The number of an environment that the account may manage; without an account, of any. */
export const manageableEnvironment = (db: Queryable, id: string, account: number | null) =>
  firstValue<number>(
    db,
    `SELECT no FROM environments e WHERE id = $1 AND ($2::int IS NULL
       OR EXISTS (SELECT 1 FROM organization_accounts m WHERE m.org = e.org AND m.account = $2))`,
    [id, account],
  );

/** Returns false if the person's reading in this hour is noted already. */
export const noteContentRead = (tx: Queryable, env: number, conv: number, account: number, hour: Date) =>
  anyRow(
    tx,
    `INSERT INTO content_reads (env, conv, account, hour) VALUES ($1, $2, $3, $4)
       ON CONFLICT DO NOTHING RETURNING 1`,
    [env, conv, account, hour],
  );
