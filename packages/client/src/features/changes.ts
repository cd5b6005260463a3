import type { Applied, ToldReactions } from '../state/told.ts';
import type { Message, Reactions } from '../types.ts';

/** How reactions, votes, pins and polls change a message; it is loaded with the first event about one. */

/** The revision at which one's own were as they are, if it is not that of the counts. */
const ownAt = new WeakMap<Reactions, number>();

/** The message after the event. */
export function changeMessage(message: Message, event: Applied, me: string | null): Message {
  switch (event.e) {
    case 'message.reactions':
    case 'reaction.own':
      return { ...message, reactions: reacted(message, event.d, me) };
    case 'message.pinned': {
      const { pinned, at: pinnedAt, actorId: pinnedBy } = event.d;
      const { pinnedAt: _at, pinnedBy: _by, ...rest } = message;
      return pinned ? { ...rest, pinnedAt, pinnedBy } : rest;
    }
    case 'message.enriched': {
      const { poll } = event.d;
      // A poll stays closed, also where an answer from before comes late.
      return poll && !message.poll?.closedAt ? { ...message, poll } : message;
    }
    default: // This version does not know it.
      return message;
  }
}

/** Counts and one's own are told apart: of each the newer one stays. An event that tells every change tells one's own too. */
function reacted(message: Message, told: ToldReactions, me: string | null): Reactions {
  const { revision, total, counts, votes, changes, more } = told;
  let { own } = told;
  const known: Reactions = message.reactions ?? { revision: -1, total: 0, counts: [], own: [] };
  const knownAt = ownAt.get(known) ?? known.revision;
  // Votes in an anonymous poll are not among the changes, so of a message with a poll only what is told to oneself counts.
  if (!own && !more && !message.poll)
    own = changes?.reduce<string[]>(
      (mine, { userId, emoji, on }) =>
        userId === me ? [...mine.filter((e) => e !== emoji), ...(on ? [emoji] : [])] : mine,
      known.own ?? [],
    );
  const hasOwn = own && revision >= knownAt;
  const shared = counts && revision > known.revision ? { revision, total: total!, counts, votes } : known;
  const mine = hasOwn ? { own, ownVotes: told.ownVotes } : known;
  const reactions: Reactions = {
    revision: shared.revision,
    total: shared.total,
    counts: shared.counts,
    ...(shared.votes ? { votes: shared.votes } : {}),
    ...(mine.own ? { own: mine.own } : {}),
    ...(mine.ownVotes?.length ? { ownVotes: mine.ownVotes } : {}),
  };
  ownAt.set(reactions, hasOwn ? revision : knownAt);
  return reactions;
}
