import { ApiError, limits, voteKeys } from '@parley/protocol';
import type { Reaction, ReactionChange, ReactionCount } from '@parley/protocol';
import { limitReached, notFound } from '../../platform/api-errors.ts';
import { blocked } from '../../log/lanes.ts';
import type { Blocked } from '../../log/lanes.ts';
import { refusal } from '../../log/refusals.ts';
import { addFlag } from '../conversations/sql.ts';
import { flags } from '../sql/flags.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { anyRow, arraysOf, firstRow, oneValue } from '../../platform/postgres/rows.ts';

/** How reactions are kept: sql/set_reactions.sql.ts has the functions. */

export interface NewReaction {
  env: number;
  /** For the lanes of conversations that are locked. */
  conversationId: string;
  conv: number;
  /** The seq of the message. */
  message: number;
  user: number;
  /** The user itself does it, not a server for it. */
  own: boolean;
  /** For a vote `poll:` and the options, with commas. */
  emoji: string;
  on: boolean;
  replace: boolean;
}

export interface ReactionSet {
  /** `cold`: the message is in the customer's database, and nothing was done. */
  status: 'ok' | 'cold';
  changed: boolean;
  reactions: Pick<Answer, 'revision' | 'total' | 'counts' | 'own'>;
}

interface Answer {
  ord: number;
  /** `ok`, `cold`, `blocked`, or why it was refused. */
  status: string;
  changed: boolean;
  revision: number;
  total: number;
  counts: ReactionCount[];
  own: string[];
}

export const pollClosed = (): ApiError =>
  new ApiError('state_conflict', { message: 'The poll is closed.', details: { state: 'closed' } });

/** Refusals that have other words than those of the log. */
const refused: Partial<Record<string, () => ApiError>> = {
  not_found: () => notFound('Message'),
  limit_reached: () =>
    limitReached(
      'emoji',
      `A message has at most ${limits.emojiPerMessage} different emoji.`,
      limits.emojiPerMessage,
    ),
  closed: () => pollClosed(),
};

/** Sets and removes many at once; one answer per item, `blocked` where another transaction has locked what it needs. */
export async function setReactions(
  db: Queryable,
  items: readonly NewReaction[],
  waitMs: number | null,
): Promise<(ReactionSet | Error | Blocked)[]> {
  const rows = await db.query<Answer>(
    'SELECT ord, status, changed, revision, total, counts, own FROM set_reactions($1, $2, $3, $4, $5, $6, $7, $8, $9)',
    [...arraysOf(items, 'env', 'conv', 'message', 'user', 'own', 'emoji', 'on', 'replace'), waitMs],
  );
  const answers = new Array<ReactionSet | Error | Blocked>(items.length);
  for (const { ord, status, changed, ...reactions } of rows)
    answers[ord - 1] =
      status === 'ok' || status === 'cold'
        ? { status, changed, reactions }
        : status === 'blocked'
          ? blocked
          : (refused[status]?.() ?? refusal(status));
  return answers;
}

interface ListedReaction extends Reaction {
  user: number;
}

/** Where a page ended. */
export type ReactionPlace = [at: string, user: number, emoji: string];

/**
 * Notes in a locked conversation that the message's poll is closed. The row of its counts is the lock of votes: those
 * under way are counted first, and the last results are told at once. Its revision is part of the one that the
 * customer's database has, and the flag says that the message changed.
 */
export async function notePollClosed(
  tx: Queryable,
  env: number,
  conv: number,
  message: number,
): Promise<void> {
  await tx.query(
    `INSERT INTO message_reactions AS r (env, conv, message, revision, due_at) VALUES ($1, $2, $3, 1, clock_timestamp())
     ON CONFLICT (conv, message, env) DO UPDATE SET revision = r.revision + 1, waiting = r.waiting OR r.total > 0, due_at = clock_timestamp()`,
    [env, conv, message],
  );
  await addFlag(tx, env, conv, flags.reactions);
}

/**
 * Who reacted to a message, newest first. The newest of each of its emoji, of which there are few, are found by index and
 * merged.
 */
export const listReactions = (
  db: Queryable,
  place: { env: number; conv: number; message: number },
  {
    emoji,
    votes,
    after,
    limit,
  }: { emoji: string | null; votes: boolean; after: ReactionPlace | null; limit: number },
): Promise<ListedReaction[]> =>
  db.query<ListedReaction>(
    `SELECT x.usr AS user, u.id AS "userId", x.emoji, x.at AS "createdAt"
     FROM message_reactions r CROSS JOIN LATERAL (
       SELECT c.entry ->> 0 AS emoji FROM jsonb_array_elements(r.counts::jsonb) c(entry)
       WHERE ($4::text IS NULL OR c.entry ->> 0 = $4) AND ($9 OR c.entry ->> 0 NOT LIKE '${voteKeys}%')
     ) e CROSS JOIN LATERAL (
       SELECT s.usr, s.emoji, s.at FROM reactions s
       WHERE s.conv = r.conv AND s.message = r.message AND s.emoji = e.emoji AND s.env = r.env
         AND ($5::timestamptz IS NULL OR (s.at, s.usr, s.emoji) < ($5::timestamptz, $6::bigint, $7::text))
       ORDER BY s.at DESC, s.usr DESC LIMIT $8
     ) x CROSS JOIN LATERAL (SELECT id FROM users WHERE no = x.usr AND env = r.env LIMIT 1) u
     WHERE r.env = $1 AND r.conv = $2 AND r.message = $3
     ORDER BY x.at DESC, x.usr DESC, x.emoji DESC LIMIT $8`,
    [
      place.env,
      place.conv,
      place.message,
      emoji,
      after?.[0] ?? null,
      after?.[1] ?? null,
      after?.[2] ?? null,
      limit,
      votes,
    ],
  );

/** After messages of a locked conversation were emptied: what shows of their reactions is told as nothing, and removed (tell.ts). */
export const dropReactions = (db: Queryable, env: number, conv: number, seqs: number[]): Promise<boolean> =>
  anyRow(
    db,
    // An erasure of reactions locks rows in this order too.
    `WITH held AS MATERIALIZED (
       SELECT message FROM message_reactions WHERE conv = $2 AND message = ANY($3) AND env = $1 AND total > 0
       ORDER BY message FOR NO KEY UPDATE
     )
     UPDATE message_reactions r SET revision = r.revision + 1, waiting = true, due_at = clock_timestamp(), changes = NULL
     FROM held WHERE r.conv = $2 AND r.message = held.message AND r.env = $1 RETURNING r.message`,
    [env, conv, seqs],
  );

/** Where messages of one conversation are that only the customer's database has. */
interface ColdPlaces {
  environmentId: string;
  conversationId: string;
  seqs: number[];
}

/** Those of the messages from which `eraseReactions` takes next that only the customer's database has; none if there are none. */
export const coldOfErased = (db: Queryable, env: number, conv: number, user: number, most: number) =>
  firstRow<ColdPlaces>(
    db,
    `SELECT e.id AS "environmentId", c.id AS "conversationId", array_agg(m.seq ORDER BY m.seq) AS seqs FROM (
       SELECT DISTINCT message FROM reactions WHERE conv = $2 AND usr = $3 AND env = $1 ORDER BY 1 LIMIT $4
     ) x JOIN messages m ON m.env = $1 AND m.conv = $2 AND m.seq = x.message AND m.id IS NULL AND m.deleted_at IS NULL AND NOT m.hard
     JOIN conversations c ON c.env = $1 AND c.no = $2 AND c.deleted_at IS NULL JOIN environments e ON e.no = $1 GROUP BY 1, 2`,
    [env, conv, user, most],
  );

/** Removes an erased user's reactions to some messages of the conversation. Returns to how many there were. */
export const eraseReactions = (db: Queryable, env: number, conv: number, user: number, most: number) =>
  oneValue<number>(db, 'SELECT erase_reactions($1, $2, $3, $4) AS n', [env, conv, user, most]);

/** Messages of one conversation whose events are due. */
export interface DueMessages {
  env: number;
  conv: number;
  messages: number[];
}

/** The messages whose events are due, the longest waiting first, and how many milliseconds the next one can wait. */
export async function dueReactions(
  db: Queryable,
  limit: number,
): Promise<{ due: DueMessages[]; nextMs: number | null }> {
  const rows = await db.query<{ env: number; conv: number; message: number; waitMs: number }>(
    `SELECT env, conv, message, extract(epoch FROM due_at - clock_timestamp())::float8 * 1000 AS "waitMs"
     FROM message_reactions WHERE waiting ORDER BY due_at LIMIT $1`,
    [limit],
  );
  const due = Map.groupBy(
    rows.filter((row) => row.waitMs <= 0),
    (row) => row.conv,
  );
  const next = rows.find((row) => row.waitMs > 0);
  return {
    due: [...due].map(([conv, some]) => ({ env: some[0]!.env, conv, messages: some.map((r) => r.message) })),
    nextMs: next ? next.waitMs : rows.length === limit ? 0 : null,
  };
}

export interface DueReactions {
  message: number;
  /** Null if it is in the customer's database. */
  id: string | null;
  /** It was deleted. */
  gone: boolean;
  revision: number;
  total: number;
  counts: ReactionCount[];
  /** The newest since the last event, at most one more than the event shows. */
  changes: ReactionChange[] | null;
}

/**
 * Those of the messages that are still due, in a locked conversation; their rows stay locked until the transaction ends.
 * It leaves out those that others have locked, because who sends to the conversation would wait for them too.
 */
export const lockDue = (tx: Queryable, { env, conv, messages }: DueMessages): Promise<DueReactions[]> =>
  tx.query<DueReactions>(
    `WITH due AS MATERIALIZED (
       SELECT * FROM message_reactions WHERE conv = $2 AND message = ANY($3) AND env = $1 AND waiting AND due_at <= clock_timestamp()
       ORDER BY message FOR NO KEY UPDATE SKIP LOCKED
     )
     SELECT r.message, m.id, m.hard OR m.deleted_at IS NOT NULL AS gone, r.revision, r.total, shown_reactions(r.env, r.counts) AS counts, (
       SELECT json_agg(json_build_object('userId', u.id, 'emoji', c.change ->> 1, 'on', (c.change ->> 2)::boolean) ORDER BY c.ord)
       FROM jsonb_array_elements(r.changes::jsonb) WITH ORDINALITY c(change, ord)
       CROSS JOIN LATERAL (SELECT id FROM users WHERE no = (c.change ->> 0)::bigint AND env = r.env LIMIT 1) u
     ) AS changes
     FROM due r CROSS JOIN LATERAL (SELECT * FROM messages WHERE conv = r.conv AND seq = r.message AND env = r.env LIMIT 1) m
     ORDER BY r.message`,
    [env, conv, messages],
  );

/** Notes that these were told, and that the next event of a message may follow after its window. */
export async function markTold(
  tx: Queryable,
  env: number,
  conv: number,
  told: readonly { message: number; windowMs: number }[],
): Promise<void> {
  await tx.query(
    `UPDATE message_reactions r SET waiting = false, changes = NULL, due_at = clock_timestamp() + t.ms * interval '1 millisecond'
     FROM unnest($3::bigint[], $4::int[]) t(message, ms) WHERE r.conv = $2 AND r.message = t.message AND r.env = $1`,
    [env, conv, ...arraysOf(told, 'message', 'windowMs')],
  );
}

/** Removes a batch of the reactions to a message that was deleted. Returns true when none is left. */
export async function clearReactions(
  tx: Queryable,
  env: number,
  conv: number,
  message: number,
  batch: number,
): Promise<boolean> {
  const gone = await tx.query(
    `DELETE FROM reactions WHERE ctid = ANY(ARRAY(SELECT ctid FROM reactions WHERE conv = $2 AND message = $3 AND env = $1 LIMIT $4))
     RETURNING 1 AS one`,
    [env, conv, message, batch],
  );
  if (gone.length === batch) return false;
  await tx.query(
    `UPDATE message_reactions SET counts = '[]', total = 0, changes = NULL, waiting = false WHERE conv = $2 AND message = $3 AND env = $1`,
    [env, conv, message],
  );
  return true;
}

/** Puts off what is due in a conversation that others have locked for long, so that it does not hold up the rest. */
export async function putOff(db: Queryable, { env, conv, messages }: DueMessages, ms: number): Promise<void> {
  await db.query(
    `UPDATE message_reactions SET due_at = clock_timestamp() + $3 * interval '1 millisecond'
     WHERE conv = $2 AND message = ANY($4) AND env = $1 AND waiting`,
    [env, conv, ms, messages],
  );
}
