import type { InviteLink } from '@parley/protocol';
import type { Queryable, Tx } from '../../../platform/postgres/db.ts';
import { anyRow, firstRow, oneRow } from '../../../platform/postgres/rows.ts';
import { conversationOf } from '../../sql/lookups.ts';
import { conversationColumns } from '../sql.ts';
import type { ConversationRow } from '../sql.ts';

/** Links by which users join groups. Making, revoking and using one hold the lock of its conversation. */

const live = 'i.expires_at > clock_timestamp() AND (i.max_uses IS NULL OR i.uses < i.max_uses)';
const columns = `i.id, i.uses, i.max_uses AS "maxUses", i.expires_at AS "expiresAt", i.created_at AS "createdAt", u.id AS "createdBy"`;
const maker =
  'LEFT JOIN LATERAL (SELECT id FROM users WHERE no = i.creator AND env = i.env LIMIT 1) u ON true';

/** Those that work, newest first. */
export const liveInvites = (db: Queryable, env: number, conv: number, most: number): Promise<InviteLink[]> =>
  db.query<InviteLink>(
    `SELECT ${columns} FROM invite_links i ${maker} WHERE i.conv = $2 AND i.env = $1 AND ${live}
     ORDER BY i.created_at DESC, i.id DESC LIMIT $3`,
    [env, conv, most],
  );

export interface NewInvite {
  env: number;
  conv: number;
  id: string;
  /** Its hash. */
  token: Buffer;
  maxUses: number | null;
  seconds: number;
  creator: number | null;
}

export const insertInvite = (tx: Tx, row: NewInvite): Promise<InviteLink> =>
  oneRow(
    tx,
    `WITH i AS (
       INSERT INTO invite_links (env, conv, id, token, max_uses, expires_at, created_at, creator)
       SELECT $1, $2, $3, $4, $5, t + $6 * interval '1 second', t, $7 FROM clock_timestamp() t RETURNING *
     ) SELECT ${columns} FROM i ${maker}`,
    [row.env, row.conv, row.id, row.token, row.maxUses, row.seconds, row.creator],
  );

export async function deleteInvite(tx: Tx, env: number, conv: number, id: string): Promise<void> {
  await tx.query('DELETE FROM invite_links WHERE env = $1 AND id = $3 AND conv = $2', [env, conv, id]);
}

/** The group that a link leads to. One look-up, whatever is wrong with the link. */
export const invitedTo = (db: Queryable, env: number, token: Buffer, user: number | null = null) =>
  firstRow<ConversationRow & { memberCount: number }>(
    db,
    `SELECT ${conversationColumns},
       (SELECT count(*) FROM members m WHERE m.env = c.env AND m.conv = c.no) AS "memberCount"
     FROM invite_links i CROSS JOIN ${conversationOf('i.env', 'i.conv')} c
     WHERE i.token = $2 AND i.env = $1 AND c.deleted_at IS NULL
       AND (${live} OR EXISTS (SELECT 1 FROM members m WHERE m.conv = i.conv AND m.usr = $3 AND m.env = i.env)) AND c.rules::json ->> 'joining' IN ('link', 'open')`,
    [env, token, user],
  );

/** Returns false if the link works no more. */
export const useInvite = (tx: Tx, env: number, token: Buffer): Promise<boolean> =>
  anyRow(
    tx,
    `UPDATE invite_links i SET uses = i.uses + 1 WHERE i.token = $2 AND i.env = $1 AND ${live} RETURNING 1`,
    [env, token],
  );

/** Those that an erased user made. */
export async function forgetInvites(tx: Tx, env: number, user: number): Promise<void> {
  await tx.query('DELETE FROM invite_links WHERE creator = $2 AND env = $1', [env, user]);
}

/** Keeps the user from being erased before the transaction ends: an erasure changes users.id, which is a key. Returns whether it exists. */
export const holdUser = (tx: Tx, env: number, user: number): Promise<boolean> =>
  anyRow(tx, 'SELECT 1 FROM users WHERE no = $2 AND env = $1 AND erased_at IS NULL FOR KEY SHARE', [
    env,
    user,
  ]);
