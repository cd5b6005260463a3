import type { Queryable } from '../../platform/postgres/db.ts';
import { anyRow, firstRow } from '../../platform/postgres/rows.ts';

export interface StoredAnswer {
  fingerprint: Buffer;
  status: number | null;
  body: Buffer | null;
}

/** Claims the key. A duplicate waits here, inside the database, until the first request has committed or failed. */
export const claim = (
  db: Queryable,
  env: number,
  key: string,
  route: Buffer,
  fingerprint: Buffer,
): Promise<boolean> =>
  anyRow(
    db,
    `INSERT INTO idempotency (env, key, route, fingerprint) VALUES ($1, $2, $3, $4)
     ON CONFLICT (env, key, route) DO UPDATE SET fingerprint = excluded.fingerprint, status = NULL, body = NULL,
       subjects = NULL, created_at = now()
     WHERE idempotency.created_at < now() - interval '24 hours' RETURNING 1`,
    [env, key, route, fingerprint],
  );

export const stored = (db: Queryable, env: number, key: string, route: Buffer) =>
  firstRow<StoredAnswer>(
    db,
    `SELECT fingerprint, status, body FROM idempotency
     WHERE env = $1 AND key = $2 AND route = $3 AND created_at >= now() - interval '24 hours'`,
    [env, key, route],
  );

export const store = (
  db: Queryable,
  env: number,
  key: string,
  route: Buffer,
  answer: { status: number; body: Buffer | null; subjects: string[] },
) =>
  db.query(
    'UPDATE idempotency SET status = $4, body = $5, subjects = $6 WHERE env = $1 AND key = $2 AND route = $3',
    [env, key, route, answer.status, answer.body, answer.subjects],
  );

/** Empties stored answers that contain one of these ids: a repeated request then gets the status without the body. */
export const forgetAnswers = (db: Queryable, env: number, ids: string[]) =>
  db.query('UPDATE idempotency SET body = NULL, subjects = NULL WHERE env = $1 AND subjects && $2', [
    env,
    ids,
  ]);
