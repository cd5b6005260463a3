/**
 * How unread messages are counted (docs/schema.md, "Unread counts"): the only module that knows which columns hold the
 * counters, and how each change of a place moves them. Its fragments take the place as a parameter, so that a second
 * kind of place (a thread) is one more `CountedPlace`, with the functions of functions.sql.ts made for it too.
 *
 * All changes happen with the row of the place locked.
 */
export interface CountedPlace {
  /** The table of places: env, no, id, last_seq, message_count, last_message_seq, last_deleted_seq. */
  places: string;
  /** The table of readers: env, usr, last_read_seq, read_count, own_unread, and the place. */
  readers: string;
  /** The column of readers, of `messages` and of `deleted` that names the place. */
  column: string;
  /** The table of deleted messages, by blocks of seqs. */
  deleted: string;
  /** The SQL functions that are made for this place. */
  functions: { deletedAbove: string; countDeleted: string; markRead: string };
}

export const inConversations: CountedPlace = {
  places: 'conversations',
  readers: 'members',
  column: 'conv',
  deleted: 'deleted_counts',
  functions: { deletedAbove: 'deleted_above', countDeleted: 'count_deleted', markRead: 'mark_read' },
};

// The arguments of the fragments are SQL: `c` and `m` are aliases of a place and of a reader, the others expressions.

/** How many deleted messages are above the seq. It is asked only if there was a deletion above it. */
export const deletedAbove = (
  place: { env: string; no: string; lastDeleted: string },
  seq: string,
  { functions }: CountedPlace = inConversations,
): string =>
  `CASE WHEN ${seq} >= ${place.lastDeleted} THEN 0 ELSE ${functions.deletedAbove}(${place.env}, ${place.no}, ${seq}) END`;

/** How many messages of place `c` reader `m` has not read. The cost does not depend on the count. */
export const unreadCount = (c: string, m: string, counted: CountedPlace = inConversations): string =>
  `${c}.message_count - ${m}.read_count - ${m}.own_unread - ${deletedAbove(
    { env: `${c}.env`, no: `${c}.no`, lastDeleted: `${c}.last_deleted_seq` },
    `${m}.last_read_seq`,
    counted,
  )}`;

/** The bit of `conversations.flags` of those that ever had a mention: the others are not asked about. */
export const mentionsFlag = 4;

/**
 * How many unread messages of the conversation mention the reader, given the conversation's flags and what is read. The
 * cost grows with the count alone.
 */
export const mentionsAbove = (
  { env, no, flags }: { env: string; no: string; flags: string },
  usr: string,
  seq: string,
): string =>
  `CASE WHEN ${flags} & ${mentionsFlag} = 0 THEN 0 ELSE mentions_above(${env}, ${no}, ${usr}, ${seq}) END`;

/** The same of member `m` of conversation `c`. */
export const mentionUnreadCount = (c: string, m: string): string =>
  mentionsAbove({ env: `${c}.env`, no: `${c}.no`, flags: `${c}.flags` }, `${m}.usr`, `${m}.last_read_seq`);

/** The columns of a place after an append: the seq of the last message, and how many there are. */
export const placeAfterAppend = (last: string, count: string): string =>
  `last_message_seq = ${last}, message_count = ${count}`;

/** The columns of a sender after a send by the user itself, which marks everything up to it as read. */
export const senderAfterOwn = (last: string, count: string): string =>
  `last_read_seq = ${last}, read_count = ${count}, own_unread = 0`;

/** The columns of a sender after a send on the user's behalf, which does not count as unread for the user. */
export const senderAfterBehalf = (m: string): string => `own_unread = ${m}.own_unread + 1`;

/**
 * The columns of a sender after several sends: `own` is how many messages of the batch the last one by the user itself
 * comes after, itself included (null if there is none); `behalf` is the same of each send on the user's behalf.
 */
export const senderAfterSeveral = (
  m: string,
  { last, count, own, behalf }: Record<'last' | 'count' | 'own' | 'behalf', string>,
): string =>
  `last_read_seq = coalesce(${last} + ${own}, ${m}.last_read_seq), read_count = coalesce(${count} + ${own}, ${m}.read_count),
        own_unread = CASE WHEN ${own} IS NULL THEN ${m}.own_unread ELSE 0 END
          + CASE WHEN ${behalf} IS NULL THEN 0 ELSE (SELECT count(*) FROM unnest(${behalf}) b WHERE b > coalesce(${own}, 0)) END`;

/** The columns of a new reader of place `c`, and their values: everything up to the seq is read; with 0, nothing is. */
export const newReader = (c: string, seq: string) => ({
  columns: 'last_read_seq, read_count',
  values: `${seq}, CASE WHEN ${seq} = 0 THEN 0 ELSE ${c}.message_count END`,
});
