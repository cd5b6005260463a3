import { voteKeys } from '@parley/protocol';
import type { MessageOrTombstone, ReactionCount, Reactions, VoteCount } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import { arraysOf } from '../../platform/postgres/rows.ts';
import { hasReactions } from './flags.ts';
import type { MessagePlace } from './message-reader.ts';

/** What shows of reactions. The tables are those of features/reactions; conversations without the flag are not asked about. */

export interface ReactionsRow {
  env: number;
  conv: number;
  seq: number;
  revision: number;
  /** Votes included, as in `counts` and `own`. */
  total: number;
  counts: ReactionCount[];
  /** Null if nobody's own were asked for. */
  own: string[] | null;
}

/** The rows of these messages; those that nobody ever reacted to have none. @param user whose own reactions are wanted too. */
export const reactionsAt = (
  db: Queryable,
  places: readonly MessagePlace[],
  user: number | null = null,
): Promise<ReactionsRow[]> =>
  places.length === 0
    ? Promise.resolve([])
    : db.query<ReactionsRow>(
        `SELECT r.env, r.conv, r.message AS seq, r.revision, r.total, shown_reactions(r.env, r.counts) AS counts,
           CASE WHEN $4::bigint IS NOT NULL THEN ARRAY(SELECT x.emoji FROM reactions x
             WHERE x.conv = r.conv AND x.usr = $4 AND x.message = r.message AND x.env = r.env ORDER BY x.at, x.emoji) END AS own
         FROM unnest($1::int[], $2::bigint[], $3::bigint[]) p(env, conv, seq)
         CROSS JOIN LATERAL (SELECT * FROM message_reactions WHERE conv = p.conv AND message = p.seq AND env = p.env LIMIT 1) r`,
        [...arraysOf(places, 'env', 'conv', 'seq'), user],
      );

const isVote = (key: string): boolean => key.startsWith(voteKeys);
const optionOf = (key: string): number => Number(key.slice(voteKeys.length));

/** As callers see them: votes for the poll apart from reactions. */
export function viewReactions({
  revision,
  total,
  counts,
  own,
}: Pick<ReactionsRow, 'revision' | 'total' | 'counts' | 'own'>): Reactions {
  const mine = own === null ? {} : ownOf(own);
  const cast = counts.filter(({ emoji }) => isVote(emoji));
  if (cast.length === 0) return { revision, total, counts, ...mine };
  const votes = cast.map(({ emoji, ...rest }): VoteCount => ({ option: optionOf(emoji), ...rest }));
  return {
    revision,
    total: votes.reduce((rest, { count }) => rest - count, total),
    counts: counts.filter(({ emoji }) => !isVote(emoji)),
    votes: votes.sort((a, b) => a.option - b.option),
    ...mine,
  };
}

/** A user's own reactions, and the options that the user voted for if there are any. */
export function ownOf(keys: readonly string[]): { own: string[]; ownVotes?: number[] } {
  const votes = keys.filter(isVote).map(optionOf);
  const own = keys.filter((key) => !isVote(key));
  return votes.length === 0 ? { own } : { own, ownVotes: votes.sort((a, b) => a - b) };
}

/** Adds what shows of reactions to messages of one conversation, as this user sees them. Deleted ones show none. */
export async function withReactions(
  db: Queryable,
  env: number,
  conversation: { no: number; flags: number },
  user: number | null,
  messages: MessageOrTombstone[],
): Promise<MessageOrTombstone[]> {
  if (!hasReactions(conversation)) return messages;
  const live = messages.filter((m) => !m.deletedAt);
  const rows = await reactionsAt(
    db,
    live.map(({ seq }) => ({ env, conv: conversation.no, seq })),
    user,
  );
  const shown = new Map(rows.filter((r) => r.total > 0).map((r) => [r.seq, viewReactions(r)]));
  return messages.map((m) => {
    const reactions = m.deletedAt ? undefined : shown.get(m.seq);
    return reactions ? { ...m, reactions } : m;
  }) as MessageOrTombstone[];
}
