import type { Conversation, MessageOrTombstone, Reactions } from '@parley/protocol';
import type { Person } from '../../log/catalogue.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { viewConversation } from '../conversations/sql.ts';
import { messagesAt, viewMessage } from '../sql/message-reader.ts';
import { reactionsAt, viewReactions } from '../sql/reaction-reader.ts';
import { usersByNumber } from '../users/sql.ts';
import { conversationsOf, membersOf } from './sql.ts';
import type { KeptEvent } from './sql.ts';

const showsConversation = new Set(['conversation.created', 'conversation.updated']);

/**
 * Loads everything that the events refer to, as it is now, in five queries at most, however many events there are.
 * @param user whose own reactions are wanted too.
 */
export async function loadReferences(
  db: Queryable,
  events: readonly KeptEvent[],
  user: number | null = null,
) {
  const places = events.flatMap(({ env, conv }) => (conv === null ? [] : [{ env, no: conv }]));
  const shown = events.flatMap(({ env, conv, type }) =>
    conv !== null && showsConversation.has(type) ? [{ env, no: conv }] : [],
  );
  const messages = events.flatMap(({ env, conv, message }) =>
    conv === null || message === null ? [] : [{ env, conv, seq: message }],
  );
  const users = events.flatMap(({ env, users, actor }) =>
    [...(users ?? []), ...(actor === null ? [] : [actor])].map((no) => ({ env, no })),
  );
  const reacted = events.flatMap(({ env, conv, message, type }) =>
    type === 'message.reactions' && conv !== null && message !== null ? [{ env, conv, seq: message }] : [],
  );
  const [conversationRows, memberRows, messageRows, userRows, reactionRows] = await Promise.all([
    conversationsOf(db, distinct(places)),
    membersOf(db, distinct(shown)),
    messagesAt(db, distinct(messages)),
    usersByNumber(db, distinct(users)),
    reactionsAt(db, distinct(reacted), user),
  ]);
  const members = new Map(memberRows.map((r) => [`${r.env} ${r.conv}`, r.members]));
  const conversations = new Map(conversationRows.map((c) => [`${c.env} ${c.no}`, c]));
  const hard = new Set(messageRows.filter((m) => m.hard).map((m) => `${m.env} ${m.conv} ${m.seq}`));
  const byMessage = new Map(messageRows.map((m) => [`${m.env} ${m.conv} ${m.seq}`, viewMessage(m)]));
  const people = new Map(userRows.map(({ env, no, id }) => [`${env} ${no}`, { no, id }]));
  const reactions = new Map(reactionRows.map((r) => [`${r.env} ${r.conv} ${r.seq}`, viewReactions(r)]));
  return {
    conversationId: ({ env, conv }: KeptEvent): string | undefined => conversations.get(`${env} ${conv}`)?.id,
    /** The conversation, with its present members for the event types that show them. */
    conversation: ({ env, conv }: KeptEvent): Conversation | undefined => {
      const row = conversations.get(`${env} ${conv}`);
      return row && viewConversation(row, members.get(`${env} ${conv}`) ?? []);
    },
    message: ({ env, conv, message }: KeptEvent): MessageOrTombstone | undefined =>
      byMessage.get(`${env} ${conv} ${message}`),
    /** The reactions to the message, for events of the type that shows them; a deleted one shows none. */
    reactions: ({ env, conv, message }: KeptEvent): Reactions | undefined => {
      const place = `${env} ${conv} ${message}`;
      return byMessage.get(place)?.deletedAt ? undefined : reactions.get(place);
    },
    /** True if the message was deleted for good. */
    hardDeleted: ({ env, conv, message }: KeptEvent): boolean => hard.has(`${env} ${conv} ${message}`),
    users: ({ env, users }: KeptEvent): Person[] =>
      (users ?? []).flatMap((no) => people.get(`${env} ${no}`) ?? []),
    actorId: ({ env, actor }: KeptEvent): string | null => people.get(`${env} ${actor}`)?.id ?? null,
  };
}

export type References = Awaited<ReturnType<typeof loadReferences>>;

function distinct<T extends object>(list: readonly T[]): T[] {
  return [...new Map(list.map((x) => [Object.values(x).join(' '), x])).values()];
}
