import type { Queryable } from '../../platform/postgres/db.ts';
import { conversationOf, memberOf } from '../sql/lookups.ts';

/** The list of messages that name a user. `log/unread` writes the rows. */

/** Where a page ended. */
export type MentionPlace = [at: string, conv: number, seq: number];

export interface NamedRow {
  conv: number;
  seq: number;
  at: string;
  /** Those of the conversation. */
  flags: number;
  /** The user is a member, and the conversation exists. */
  seen: boolean;
}

const seen = `LEFT JOIN ${memberOf('$1', 'x.conv', '$2')} m ON true CROSS JOIN ${conversationOf('$1', 'x.conv')} c`;
const columns = 'x.conv, x.seq, x.at, c.flags, m.usr IS NOT NULL AND c.deleted_at IS NULL AS seen';

/** Messages that name the user, newest first, also those of conversations that it left. */
export const listMentions = (
  db: Queryable,
  env: number,
  user: number,
  after: MentionPlace | null,
  limit: number,
): Promise<NamedRow[]> =>
  db.query<NamedRow>(
    `SELECT ${columns} FROM (
       SELECT conv, seq, at FROM mentions WHERE usr = $2 AND usr <> 0 AND env + 0 = $1
         AND ($3::timestamptz IS NULL OR (at, conv, seq) < ($3::timestamptz, $4::bigint, $5::bigint))
       ORDER BY at DESC, conv DESC, seq DESC LIMIT $6
     ) x ${seen} ORDER BY x.at DESC, x.conv DESC, x.seq DESC`,
    [env, user, after?.[0] ?? null, after?.[1] ?? null, after?.[2] ?? null, limit],
  );

/** The same of one conversation. */
export const listMentionsIn = (
  db: Queryable,
  env: number,
  user: number,
  conv: number,
  after: MentionPlace | null,
  limit: number,
): Promise<NamedRow[]> =>
  db.query<NamedRow>(
    `SELECT ${columns} FROM (
       SELECT conv, seq, at FROM mentions WHERE conv = $3 AND usr = $2 AND env = $1 AND ($4::bigint IS NULL OR seq < $4::bigint)
       ORDER BY seq DESC LIMIT $5
     ) x ${seen} ORDER BY x.seq DESC`,
    [env, user, conv, after?.[2] ?? null, limit],
  );
