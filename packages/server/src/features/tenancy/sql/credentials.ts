import type { Queryable } from '../../../platform/postgres/db.ts';
import { arraysOf } from '../../../platform/postgres/rows.ts';
import { deactivatedAt } from '../../sql/lookups.ts';
import { environmentColumns } from './environments.ts';
import type { EnvironmentRow } from './environments.ts';

/** What a credential names. The form of all fields has been checked: text that PostgreSQL cannot store would fail all of a batch. */
export interface CredentialNames {
  /** The key that signed the token, or the environment that a development token names. */
  keyId: string | null;
  envId: string | null;
  /** Empty: none. */
  userId: string;
}

export interface FoundCredential extends EnvironmentRow {
  ord: number;
  secret: Buffer | null;
  /** Seconds by which its signer's clock was seen to run ahead of ours. */
  ahead: number | null;
  revoked_at: string | null;
  user_no: number | null;
  deactivated_at: string | null;
  tokens_from: string | null;
  last_seen_at: string | null;
  personal_rev: number | null;
}

/** LIMIT makes each of these one index look-up, also before the planner has statistics. */
const lookupSql = `
  SELECT w.ord, ${environmentColumns}, k.secret, k.revoked_at,
    CASE WHEN k.ahead_at > now() - interval '1 day' THEN k.ahead ELSE 0 END AS ahead, u.no AS user_no, ${deactivatedAt('u')} AS deactivated_at, u.tokens_from,
    u.last_seen_at, u.personal_rev
  FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS w(key, env, usr, ord)
  LEFT JOIN LATERAL (SELECT * FROM secret_keys WHERE id = w.key LIMIT 1) k ON true
  LEFT JOIN LATERAL (SELECT no FROM environments WHERE w.key IS NULL AND id = w.env LIMIT 1) d ON true
  CROSS JOIN LATERAL (SELECT * FROM environments WHERE no = coalesce(k.env, d.no) LIMIT 1) e
  LEFT JOIN LATERAL (SELECT * FROM users WHERE env = e.no AND id = w.usr LIMIT 1) u ON true`;

/** Finds many at once; the answer of one that names no environment is null. */
export async function findCredentials(
  db: Queryable,
  items: readonly CredentialNames[],
): Promise<(FoundCredential | null)[]> {
  const rows = await db.query<FoundCredential>(lookupSql, arraysOf(items, 'keyId', 'envId', 'userId'));
  const results = new Array<FoundCredential | null>(items.length).fill(null);
  for (const row of rows) results[row.ord - 1] = row;
  return results;
}
