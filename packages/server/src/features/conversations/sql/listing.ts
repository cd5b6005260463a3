import type { Queryable, Tx } from '../../../platform/postgres/db.ts';
import { firstRow } from '../../../platform/postgres/rows.ts';
import { conversationOf } from '../../sql/lookups.ts';
import { conversationColumns } from '../sql.ts';
import type { ConversationRow } from '../sql.ts';

/** Groups that everybody finds. A change of a listing holds the lock of the conversation. */

export async function list(
  tx: Tx,
  env: number,
  conv: number,
  { name, words }: { name: string; words: readonly string[] },
): Promise<void> {
  await tx.query(
    `INSERT INTO listed_groups (env, conv, members, name)
     SELECT $1, $2, (SELECT count(*) FROM members WHERE env = $1 AND conv = $2), $3
     ON CONFLICT (conv, env) DO UPDATE SET members = excluded.members, name = excluded.name`,
    [env, conv, name],
  );
  await tx.query('DELETE FROM listed_words WHERE conv = $2 AND env + 0 = $1 AND word <> ALL ($3::text[])', [
    env,
    conv,
    words,
  ]);
  await tx.query(
    `INSERT INTO listed_words (env, word, conv) SELECT $1, w, $2 FROM unnest($3::text[]) w ON CONFLICT DO NOTHING`,
    [env, conv, words],
  );
}

export async function unlist(tx: Tx, env: number, conv: number): Promise<void> {
  await tx.query('DELETE FROM listed_groups WHERE conv = $2 AND env = $1', [env, conv]);
  await tx.query('DELETE FROM listed_words WHERE conv = $2 AND env + 0 = $1', [env, conv]);
}

export async function recount(tx: Tx, env: number, conv: number): Promise<void> {
  await tx.query(
    `UPDATE listed_groups SET members = (SELECT count(*) FROM members WHERE env = $1 AND conv = $2)
     WHERE conv = $2 AND env = $1`,
    [env, conv],
  );
}

/** Where a page ended. */
export type ListedPlace = [members: number, name: string, conv: number];

interface ListedRow extends ConversationRow {
  memberCount: number;
  /** What it is sorted by, after the number of its members. */
  place: string;
}

const columns = `${conversationColumns}, l.members AS "memberCount", l.name AS place`;
const later = 'l.members <= $2 AND (l.members < $2 OR (l.name, l.conv) > ($3, $4::bigint))';
const order = 'ORDER BY l.members DESC, l.name, l.conv LIMIT $5';
const first: ListedPlace = [2 ** 31 - 1, '', 0];

export const listed = (db: Queryable, env: number, after: ListedPlace | null, limit: number) =>
  db.query<ListedRow>(
    `SELECT ${columns} FROM listed_groups l CROSS JOIN ${conversationOf('l.env', 'l.conv')} c
     WHERE l.env = $1 AND ${later} ${order}`,
    [env, ...(after ?? first), limit],
  );

/** How many groups with the first of the words are looked at. */
const mostLooked = 5_000;
/** Behind all letters. */
const last = '\u{10ffff}';

/** Those with all the words, of which the last may be the beginning of one. */
export const listedWith = (
  db: Queryable,
  env: number,
  words: readonly string[],
  after: ListedPlace | null,
  limit: number,
): Promise<ListedRow[]> => {
  const begins = words.at(-1)!;
  const whole = words.slice(0, -1);
  const one = `x.word >= $6 AND x.word < $7`;
  return db.query<ListedRow>(
    `WITH found AS MATERIALIZED (
       SELECT DISTINCT f.conv FROM (
         SELECT x.conv FROM listed_words x WHERE x.env = $1 AND ${whole.length > 0 ? 'x.word = ($8::text[])[1]' : one} LIMIT ${mostLooked}
       ) f
     )
     SELECT ${columns} FROM found f
     CROSS JOIN LATERAL (SELECT * FROM listed_groups WHERE conv = f.conv AND env = $1 LIMIT 1) l
     CROSS JOIN ${conversationOf('l.env', 'l.conv')} c
     WHERE ${later} AND EXISTS (SELECT 1 FROM listed_words x WHERE x.conv = l.conv AND x.env = $1 AND ${one})
       AND NOT EXISTS (SELECT 1 FROM unnest($8::text[]) w
         WHERE NOT EXISTS (SELECT 1 FROM listed_words x WHERE x.conv = l.conv AND x.env = $1 AND x.word = w))
     ${order}`,
    [env, ...(after ?? first), limit, begins, begins + last, whole],
  );
};

export const findListed = (db: Queryable, env: number, id: string): Promise<ListedRow | undefined> =>
  firstRow(
    db,
    `SELECT ${columns} FROM conversations c
     CROSS JOIN LATERAL (SELECT * FROM listed_groups WHERE conv = c.no AND env = c.env LIMIT 1) l
     WHERE c.env = $1 AND c.id = $2 AND c.deleted_at IS NULL`,
    [env, id],
  );
