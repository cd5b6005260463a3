import type { User } from '@parley/protocol';
import type { Queryable, Tx } from '../../platform/postgres/db.ts';
import { arraysOf, firstRow, firstValue, oneValue } from '../../platform/postgres/rows.ts';
import { parseMetadata } from '../metadata.ts';
import { deactivatedAt } from '../sql/lookups.ts';

export interface UserRow {
  no: number;
  id: string;
  name: string | null;
  image_url: string | null;
  metadata: string | null;
  created_at: string;
  deactivated_at: string | null;
  tokens_from: string | null;
}

const columns = `no, id, name, image_url, metadata, created_at, ${deactivatedAt()} AS deactivated_at, tokens_from`;

export const viewUser = (row: UserRow): User => ({
  id: row.id,
  name: row.name,
  imageUrl: row.image_url,
  metadata: parseMetadata(row.metadata),
  createdAt: row.created_at,
  deactivatedAt: row.deactivated_at,
});

export const findUser = (db: Queryable, env: number, id: string): Promise<UserRow | undefined> =>
  firstRow(db, `SELECT ${columns} FROM users WHERE env = $1 AND id = $2 AND erased_at IS NULL`, [env, id]);

export const findUsers = (db: Queryable, env: number, ids: readonly string[]): Promise<UserRow[]> =>
  db.query<UserRow>(
    `SELECT u.* FROM unnest($2::text[]) AS w(id)
     CROSS JOIN LATERAL (SELECT ${columns} FROM users WHERE env = $1 AND id = w.id AND erased_at IS NULL LIMIT 1) u`,
    [env, ids],
  );

export const newestConversations = (db: Queryable, env: number, user: number, limit: number) =>
  db.query<{ cid: string }>(
    `SELECT c.id AS cid FROM (
       SELECT conv FROM members WHERE usr = $2 AND env + 0 = $1 ORDER BY last_activity_step DESC LIMIT $3
     ) m CROSS JOIN LATERAL (
       SELECT id FROM conversations WHERE no = m.conv AND env = $1 AND deleted_at IS NULL LIMIT 1
     ) c`,
    [env, user, limit],
  );

/** @param prefix what ids must begin with; '' matches every id. */
export const listUsers = (db: Queryable, env: number, after: string, limit: number, prefix = '') =>
  db.query<UserRow>(
    `SELECT ${columns} FROM users WHERE env = $1 AND id > $2 AND id >= $4 AND id < $5 AND erased_at IS NULL ORDER BY id LIMIT $3`,
    [env, after, limit, prefix, endOf(prefix)],
  );

/** Ids have only characters below \x7f and are compared byte by byte, so all that begin with the prefix sort below this. */
const endOf = (prefix: string): string => `${prefix}\x7f`;

/** Where a page ended, by the folded name. */
export type NamePlace = [name: string, id: string];

/** Users sorted by name, ignoring case, then by id. */
export const listUsersByName = (
  db: Queryable,
  env: number,
  asked: { namePrefix: string; prefix: string; after: NamePlace | null; limit: number },
): Promise<(UserRow & { folded: string })[]> =>
  db.query(
    `SELECT ${columns}, lower(name) AS folded FROM users
     WHERE env = $1 AND name IS NOT NULL AND erased_at IS NULL
       AND lower(name) ~>=~ coalesce($6::text, lower($2)) AND lower(name) ~<~ (lower($2) || $3) AND left(id, $4) = $5
       AND ($6 IS NULL OR lower(name) ~>~ $6 OR id > $7)
     ORDER BY lower(name) USING ~<~, id LIMIT $8`,
    [
      env,
      asked.namePrefix,
      lastCharacter,
      asked.prefix.length,
      asked.prefix,
      asked.after?.[0] ?? null,
      asked.after?.[1] ?? null,
      asked.limit,
    ],
  );
/** The highest code point: names that begin with a prefix sort, byte by byte, below the prefix followed by it. */
const lastCharacter = '\u{10ffff}';

/** Inserts the user or sets the given fields (an undefined field keeps its value). Returns undefined for an erased id. */
export const upsertUser = (
  db: Queryable,
  env: number,
  id: string,
  subject: Buffer,
  fields: { name?: string | null; imageUrl?: string | null; metadata?: string },
): Promise<UserRow | undefined> =>
  firstRow(
    db,
    `INSERT INTO users AS u (env, id, name, image_url, metadata, tokens_from)
     VALUES ($1, $2, $3, $4, $5, (SELECT tokens_from FROM erased_ids WHERE env = $1 AND subject = $9))
     ON CONFLICT (env, id) DO UPDATE SET
       name = CASE WHEN $6 THEN $3 ELSE u.name END,
       image_url = CASE WHEN $7 THEN $4 ELSE u.image_url END,
       metadata = CASE WHEN $8 THEN $5 ELSE u.metadata END
     WHERE u.erased_at IS NULL
     RETURNING ${columns}`,
    [
      env,
      id,
      fields.name ?? null,
      fields.imageUrl ?? null,
      fields.metadata ?? null,
      fields.name !== undefined,
      fields.imageUrl !== undefined,
      fields.metadata !== undefined,
      subject,
    ],
  );

/** The numbers of those users that exist, by id; with `erased` also of erased ones, by their alias. */
export async function userNumbers(
  db: Queryable,
  env: number,
  ids: string[],
  erased = false,
): Promise<Map<string, number>> {
  const rows = await db.query<{ id: string; no: number }>(
    `SELECT id, no FROM users WHERE env = $1 AND id = ANY($2)${erased ? '' : ' AND erased_at IS NULL'}`,
    [env, ids],
  );
  return new Map(rows.map((r) => [r.id, r.no]));
}

/** Creates the users that do not exist yet, in the order of their ids, so that two requests cannot deadlock. */
export async function createMissingUsers(
  db: Queryable,
  env: number,
  ids: string[],
  subject: (id: string) => Buffer,
): Promise<void> {
  const sorted = [...ids].sort();
  await db.query(
    `INSERT INTO users (env, id, tokens_from)
     SELECT $1, w.id, x.tokens_from FROM unnest($2::text[], $3::bytea[]) WITH ORDINALITY AS w(id, subject, ord)
     LEFT JOIN erased_ids x ON x.env = $1 AND x.subject = w.subject
     ORDER BY w.ord ON CONFLICT (env, id) DO NOTHING`,
    [env, sorted, sorted.map(subject)],
  );
}

const deactivatedBefore = deactivatedAt();
export const setDeactivated = (
  db: Queryable,
  env: number,
  id: string,
  deactivated: boolean,
  until: string | null,
): Promise<UserRow | undefined> =>
  firstRow(
    db,
    `UPDATE users SET
       deactivated_at = CASE WHEN $3 THEN coalesce(${deactivatedBefore}, now()) END, deactivated_until = $4,
       tokens_from = CASE WHEN $3 AND ${deactivatedBefore} IS NULL THEN token_cutoff(env, tokens_from) ELSE tokens_from END
     WHERE env = $1 AND id = $2 AND erased_at IS NULL RETURNING ${columns}`,
    [env, id, deactivated, until],
  );

/** Until the transaction ends, nothing else changes what belongs to the users. */
export async function lockUsers(tx: Queryable, env: number, users: readonly number[]): Promise<void> {
  await tx.query('SELECT 1 FROM users WHERE env = $1 AND no = ANY($2) ORDER BY no FOR NO KEY UPDATE', [
    env,
    users,
  ]);
}

/**
 * Null: the silence is over; infinity: it has no end. Waits for reactions that have seen the user as it was, as `silenceMember`
 * does.
 */
export async function setSilenced(tx: Tx, env: number, user: number, until: string | null): Promise<void> {
  await tx.query('SELECT 1 FROM users WHERE no = $2 AND env = $1 FOR UPDATE', [env, user]);
  await tx.query('UPDATE users SET silenced_until = $3 WHERE no = $2 AND env = $1', [env, user, until]);
}

export const revokeTokens = (db: Queryable, env: number, id: string): Promise<UserRow | undefined> =>
  firstRow(
    db,
    `UPDATE users SET tokens_from = token_cutoff(env, tokens_from)
     WHERE env = $1 AND id = $2 AND erased_at IS NULL RETURNING ${columns}`,
    [env, id],
  );

/** Users by number. Erased users are found too, under their alias. */
export const usersByNumber = (
  db: Queryable,
  users: readonly { env: number; no: number }[],
): Promise<{ env: number; no: number; id: string; name: string | null }[]> =>
  users.length === 0
    ? Promise.resolve([])
    : db.query(
        `SELECT x.env, x.no, x.id, x.name FROM unnest($1::int[], $2::bigint[]) u(env, no)
         CROSS JOIN LATERAL (SELECT * FROM users WHERE env = u.env AND no = u.no LIMIT 1) x`,
        arraysOf(users, 'env', 'no'),
      );

/** Numbers of those events (`no`, created at `at`) that name, by its present alias, a user who was erased after the event. */
export async function erasedSince(
  db: Queryable,
  named: readonly { env: number; id: string; at: string; no: number }[],
): Promise<Set<number>> {
  if (named.length === 0) return new Set();
  const rows = await db.query<{ no: number }>(
    `SELECT n.no FROM unnest($1::int[], $2::text[], $3::timestamptz[], $4::bigint[]) n(env, id, at, no)
     JOIN users u ON u.env = n.env AND u.id = n.id AND u.erased_at > n.at`,
    arraysOf(named, 'env', 'id', 'at', 'no'),
  );
  return new Set(rows.map((r) => r.no));
}

/** What happens to the messages of an erased user. */
export type ErasureMode = 'anonymize' | 'delete';

/**
 * Renames a user and empties the row, which is marked as `erasing`. Tokens of the erased id are refused.
 * @param subject the keyed hash of the erased id.
 * @returns the user's number; undefined if there is no such user.
 */
export async function eraseUser(
  tx: Queryable,
  env: number,
  id: string,
  erased: { alias: string; mode: ErasureMode; subject: Buffer },
): Promise<number | undefined> {
  const [row] = await tx.query<{ no: number; tokens_from: string }>(
    `UPDATE users SET id = $3, name = NULL, image_url = NULL, metadata = NULL, erased_at = now(), erasing = $4,
       deactivated_at = coalesce(deactivated_at, now()), deactivated_until = NULL, silenced_until = NULL,
       tokens_from = token_cutoff(env, tokens_from), last_seen_at = NULL
     WHERE env = $1 AND id = $2 AND erased_at IS NULL RETURNING no, tokens_from`,
    [env, id, erased.alias, erased.mode],
  );
  if (!row) return undefined;
  await tx.query(
    `INSERT INTO erased_ids (env, subject, tokens_from) VALUES ($1, $2, $3)
     ON CONFLICT (env, subject) DO UPDATE SET tokens_from = greatest(erased_ids.tokens_from, excluded.tokens_from)`,
    [env, erased.subject, row.tokens_from],
  );
  return row.no;
}

export const endErasure = (db: Queryable, env: number, user: number): Promise<unknown> =>
  db.query('UPDATE users SET erasing = NULL WHERE env = $1 AND no = $2', [env, user]);

/** Erasures that a crash cut off. */
export const unfinishedErasures = (db: Queryable) =>
  db.query<{ env: number; no: number; id: string; erasing: ErasureMode }>(
    `SELECT env, no, id, erasing FROM users WHERE erasing IS NOT NULL AND erased_at < now() - interval '1 minute' ORDER BY env, no LIMIT 100`,
  );

/** Counts a change of the user's personal state, and returns the number of it. */
export const nextPersonalRev = (tx: Queryable, env: number, user: number): Promise<number> =>
  oneValue(
    tx,
    'UPDATE users SET personal_rev = personal_rev + 1 WHERE no = $2 AND env = $1 RETURNING personal_rev AS rev',
    [env, user],
  );

/** Stores when users were last online; returns those that were not erased. */
export const setLastSeen = (db: Queryable, seen: readonly { env: number; user: number; at: string }[]) =>
  db.query<{ no: number; userId: string; lastSeenAt: string }>(
    `UPDATE users u SET last_seen_at = w.at FROM unnest($1::int[], $2::bigint[], $3::timestamptz[]) AS w(env, no, at)
     WHERE u.no = w.no AND u.env = w.env AND u.erased_at IS NULL
     RETURNING u.no, u.id AS "userId", u.last_seen_at AS "lastSeenAt"`,
    arraysOf(seen, 'env', 'user', 'at'),
  );

/** The time before which tokens of an erased id are refused; undefined if the id was not erased. */
export const erasedCutoff = (db: Queryable, env: number, subject: Buffer): Promise<string | undefined> =>
  firstValue(db, 'SELECT tokens_from AS "tokensFrom" FROM erased_ids WHERE env = $1 AND subject = $2', [
    env,
    subject,
  ]);
