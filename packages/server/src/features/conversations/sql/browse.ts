import type { ExplorerConversation } from '@parley/protocol';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { conversationOf, userOf } from '../../sql/lookups.ts';

/** Conversations of a whole environment, for the people who run it: newest activity first, without what was said. */

/** Where a conversation stands: [the coarse step of its last activity, its number]. */
export type Place = [step: number, no: number];

interface Placed {
  step: number;
  no: number;
}

/** SQL of the first column of the index of living conversations, which nothing but these lists asks for. */
const living = 'CASE WHEN c.deleted_at IS NULL THEN c.env END';

/** Of everybody. */
export const newest = (
  db: Queryable,
  env: number,
  { type, after, limit }: { type: string | null; after: Place | null; limit: number },
): Promise<Placed[]> =>
  db.query<Placed>(
    `SELECT c.last_activity_step AS step, c.no FROM conversations c
     WHERE ${living} = $1 AND ($2::text IS NULL OR c.type = $2)
       AND ($3::int IS NULL OR (c.last_activity_step, c.no) < ($3, $4::bigint))
     ORDER BY c.last_activity_step DESC, c.no DESC LIMIT $5`,
    [env, type, after?.[0] ?? null, after?.[1] ?? null, limit],
  );

/** Of one member. */
export const newestOf = (
  db: Queryable,
  env: number,
  { user, type, after, limit }: { user: number; type: string | null; after: Place | null; limit: number },
): Promise<Placed[]> =>
  db.query<Placed>(
    `SELECT m.last_activity_step AS step, c.no FROM members m CROSS JOIN ${conversationOf('m.env', 'm.conv')} c
     WHERE m.env + 0 = $1 AND m.usr = $2 AND c.deleted_at IS NULL AND ($3::text IS NULL OR c.type = $3)
       AND ($4::int IS NULL OR (m.last_activity_step, c.no) < ($4, $5::bigint))
     ORDER BY m.last_activity_step DESC, c.no DESC LIMIT $6`,
    [env, user, type, after?.[0] ?? null, after?.[1] ?? null, limit],
  );

/** How many of the newest conversations are looked through for a name, and how many of each member are taken. */
const looked = { byName: 5_000, ofMember: 50 };

/** By id, by the beginning of the name, or by one of the members. */
export async function matching(
  db: Queryable,
  env: number,
  { text, members, limit }: { text: string; members: number[]; limit: number },
): Promise<number[]> {
  const begins = `${text.toLowerCase().replaceAll(/[\\%_]/g, String.raw`\$&`)}%`;
  const rows = await db.query<{ no: number }>(
    `SELECT no FROM conversations WHERE env = $1 AND id = $2
     UNION SELECT n.no FROM (
       SELECT c.no, c.name FROM conversations c WHERE ${living} = $1
       ORDER BY c.last_activity_step DESC, c.no DESC LIMIT $6
     ) n WHERE lower(n.name) LIKE $3
     UNION SELECT m.conv FROM unnest($4::bigint[]) u(no) CROSS JOIN LATERAL (
       SELECT m.conv FROM members m WHERE m.env + 0 = $1 AND m.usr = u.no ORDER BY m.last_activity_step DESC LIMIT $7
     ) m
     LIMIT $5`,
    [env, text, begins, members, limit, looked.byName, looked.ofMember],
  );
  return rows.map(({ no }) => no);
}

/** As many people as a row shows. */
const shownPeople = 4;

/** The given conversations with some of their people, by last activity. */
export const described = (db: Queryable, env: number, convs: number[]): Promise<ExplorerConversation[]> =>
  db.query<ExplorerConversation>(
    `SELECT c.id, c.type, c.name, c.last_seq AS "lastSeq", c.created_at AS "createdAt", c.last_activity_at AS "lastActivityAt",
       (SELECT count(*)::int FROM members m WHERE m.env = c.env AND m.conv = c.no) AS "memberCount",
       (SELECT coalesce(json_agg(json_build_object('id', u.id, 'name', u.name)), '[]') FROM (
         SELECT m.usr FROM members m WHERE m.env = c.env AND m.conv = c.no ORDER BY m.usr LIMIT $3
       ) m CROSS JOIN ${userOf('c.env', 'm.usr')} u) AS people
     FROM unnest($2::bigint[]) w(no) CROSS JOIN ${conversationOf('$1', 'w.no')} c
     WHERE c.deleted_at IS NULL ORDER BY c.last_activity_at DESC, c.no DESC`,
    [env, convs, shownPeople],
  );
