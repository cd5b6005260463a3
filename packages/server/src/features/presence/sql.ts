import type { Queryable } from '../../platform/postgres/db.ts';

/** Conversations of many users at once: [position in the question, id, last seq]. */
export const membershipsOf = (
  db: Queryable,
  envs: number[],
  users: number[],
): Promise<{ ord: number; cid: string; lastSeq: number }[]> =>
  db.query(
    `SELECT w.ord, c.id AS cid, c.last_seq AS "lastSeq" FROM unnest($1::int[], $2::bigint[]) WITH ORDINALITY AS w(env, usr, ord)
     JOIN members m ON m.env = w.env AND m.usr = w.usr
     CROSS JOIN LATERAL (
       SELECT id, last_seq FROM conversations WHERE no = m.conv AND env = m.env AND deleted_at IS NULL LIMIT 1
     ) c`,
    [envs, users],
  );

export interface Watchable {
  no: number;
  userId: string;
  lastSeenAt: string | null;
}

/** SPEC 4, socket rule 3: oneself, and users sharing a live conversation; others are dropped silently. */
export const watchable = (db: Queryable, env: number, user: number, ids: string[]): Promise<Watchable[]> =>
  db.query<Watchable>(
    `SELECT u.no, u.id AS "userId", u.last_seen_at AS "lastSeenAt" FROM users u
     WHERE u.env = $1 AND u.id = ANY($3) AND u.erased_at IS NULL AND (u.no = $2 OR EXISTS (
       SELECT 1 FROM members x JOIN members y ON y.env = x.env AND y.conv = x.conv AND y.usr = u.no
       JOIN conversations c ON c.env = x.env AND c.no = x.conv AND c.deleted_at IS NULL
       WHERE x.env = $1 AND x.usr = $2))`,
    [env, user, ids],
  );

/** Of the users watched so far, those that may no longer be. */
export const unwatchable = async (
  db: Queryable,
  env: number,
  user: number,
  watched: number[],
): Promise<number[]> =>
  (
    await db.query<{ no: number }>(
      `SELECT w.no FROM unnest($3::bigint[]) w(no) WHERE w.no <> $2 AND NOT EXISTS (
         SELECT 1 FROM members x JOIN members y ON y.env = x.env AND y.conv = x.conv AND y.usr = w.no
         JOIN conversations c ON c.env = x.env AND c.no = x.conv AND c.deleted_at IS NULL
         WHERE x.env = $1 AND x.usr = $2)`,
      [env, user, watched],
    )
  ).map((r) => r.no);

/** Remembers when a user was last there; returns its id, or undefined for an erased one. */
export async function setLastSeen(
  db: Queryable,
  env: number,
  user: number,
  at: string,
): Promise<string | undefined> {
  const [row] = await db.query<{ id: string }>(
    'UPDATE users SET last_seen_at = $3 WHERE env = $1 AND no = $2 AND erased_at IS NULL RETURNING id',
    [env, user, at],
  );
  return row?.id;
}

/** The ids of users that were not erased. */
export const idsOf = (
  db: Queryable,
  users: readonly { env: number; user: number }[],
): Promise<{ no: number; userId: string }[]> =>
  db.query(
    `SELECT u.no, u.id AS "userId" FROM unnest($1::int[], $2::bigint[]) AS w(env, usr)
     JOIN users u ON u.env = w.env AND u.no = w.usr WHERE u.erased_at IS NULL`,
    [users.map((u) => u.env), users.map((u) => u.user)],
  );

/** Which of these sessions may not go on: their environments, keys and (where asked) users as they are now. */
export interface Standing {
  ord: number;
  suspended: boolean;
  deactivated: boolean;
}
export const standings = (
  db: Queryable,
  sessions: { env: number; user: number | null; keyId: string | null; since: number }[],
): Promise<Standing[]> =>
  db.query<Standing>(
    `SELECT w.ord, e.status = 'suspended' AS suspended, coalesce(u.deactivated_at IS NOT NULL, false) AS deactivated
     FROM unnest($1::int[], $2::bigint[], $3::text[], $4::float8[]) WITH ORDINALITY AS w(env, usr, key, since, ord)
     JOIN environments e ON e.no = w.env LEFT JOIN secret_keys k ON k.id = w.key
     LEFT JOIN users u ON u.env = w.env AND u.no = w.usr
     WHERE e.status = 'suspended' OR k.revoked_at IS NOT NULL OR u.deactivated_at IS NOT NULL
       OR u.tokens_from > to_timestamp(w.since / 1000) + interval '1 second'`,
    [
      sessions.map((s) => s.env),
      sessions.map((s) => s.user),
      sessions.map((s) => s.keyId),
      sessions.map((s) => s.since),
    ],
  );
