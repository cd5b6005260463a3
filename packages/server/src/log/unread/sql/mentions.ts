import type { Queryable } from '../../../platform/postgres/db.ts';

/** Rows of `mentions`, which count as unread for their users. New messages write theirs with the commit (log/sql/consumers.ts). */

/** After an edit: numbers of users, and 0 for all together. The conversation is locked. */
export async function changeMentions(
  tx: Queryable,
  env: number,
  message: { conv: number; seq: number; sender: number | null; createdAt: string },
  { added, removed }: { added: number[]; removed: number[] },
): Promise<void> {
  const { conv, seq, sender, createdAt } = message;
  if (removed.length > 0)
    await tx.query('DELETE FROM mentions WHERE conv = $2 AND usr = ANY($3) AND seq = $4 AND env = $1', [
      env,
      conv,
      removed,
      seq,
    ]);
  if (added.length > 0)
    await tx.query('SELECT note_mentions($1, $2, $3, $4, $5, $6)', [
      env,
      conv,
      seq,
      sender,
      createdAt,
      added,
    ]);
}

/** After messages were emptied: `extras` are those that they had. The conversation is locked. */
export async function dropMentions(
  tx: Queryable,
  env: number,
  conv: number,
  messages: readonly { seq: number; extras: string }[],
): Promise<void> {
  await tx.query(
    `DELETE FROM mentions WHERE ctid = ANY(ARRAY(
       SELECT x.ctid FROM unnest($3::bigint[], $4::text[]) w(seq, extras)
       CROSS JOIN LATERAL (SELECT DISTINCT usr FROM unnest(mentioned_users(w.extras)) u(usr)) u
       CROSS JOIN LATERAL (SELECT ctid FROM mentions WHERE conv = $2 AND usr = u.usr AND seq = w.seq AND env = $1 LIMIT 1) x))`,
    [env, conv, messages.map((m) => m.seq), messages.map((m) => m.extras)],
  );
}

/** Removes rows of an erased user, who has no more use for them. Returns how many. */
export async function eraseMentions(db: Queryable, env: number, user: number, most: number): Promise<number> {
  const gone = await db.query(
    `DELETE FROM mentions WHERE ctid = ANY(ARRAY(
       SELECT ctid FROM mentions WHERE usr = $2 AND usr <> 0 AND env + 0 = $1 LIMIT $3)) RETURNING 1 AS one`,
    [env, user, most],
  );
  return gone.length;
}
