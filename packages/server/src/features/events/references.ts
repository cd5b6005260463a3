import type { Conversation, MessageOrTombstone } from '@parley/protocol';
import type { Person } from '../../log/catalogue.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { viewConversation } from '../conversations/sql.ts';
import type { ConversationRow, MemberView } from '../conversations/sql.ts';
import { messagesAt, viewMessage } from '../message-reader.ts';
import { usersByNumber } from '../users/sql.ts';

/** A stored event, which refers to other rows by number. */
export interface KeptEvent {
  env: number;
  conv: number | null;
  seq: number | null;
  type: string;
  /** The seq of the message that the event is about. */
  message: number | null;
  users: number[] | null;
  actor: number | null;
  data: string | null;
}

/** What events refer to, as it is now. */
export interface References {
  conversationId(event: KeptEvent): string | undefined;
  /** The conversation, with its present members for the event types that show them. */
  conversation(event: KeptEvent): Conversation | undefined;
  message(event: KeptEvent): MessageOrTombstone | undefined;
  /** True if the message was deleted for good. */
  hardDeleted(event: KeptEvent): boolean;
  users(event: KeptEvent): Person[];
  actorId(event: KeptEvent): string | null;
}

const showsConversation = new Set(['conversation.created', 'conversation.updated']);

/** Loads everything that the events refer to, in four queries however many events there are. */
export async function loadReferences(db: Queryable, events: readonly KeptEvent[]): Promise<References> {
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
  const [conversationRows, memberRows, messageRows, userRows] = await Promise.all([
    conversationsOf(db, distinct(places)),
    membersOf(db, distinct(shown)),
    messagesAt(db, distinct(messages)),
    usersByNumber(db, distinct(users)),
  ]);
  const members = new Map(memberRows.map((r) => [`${r.env} ${r.conv}`, r.members]));
  const conversations = new Map(conversationRows.map((c) => [`${c.env} ${c.no}`, c]));
  const hard = new Set(messageRows.filter((m) => m.hard).map((m) => `${m.env} ${m.conv} ${m.seq}`));
  const byMessage = new Map(messageRows.map((m) => [`${m.env} ${m.conv} ${m.seq}`, viewMessage(m)]));
  const people = new Map(userRows.map(({ env, no, id }) => [`${env} ${no}`, { no, id }]));
  return {
    conversationId: ({ env, conv }) => conversations.get(`${env} ${conv}`)?.id,
    conversation: ({ env, conv }) => {
      const row = conversations.get(`${env} ${conv}`);
      return row && viewConversation(row, members.get(`${env} ${conv}`) ?? []);
    },
    message: ({ env, conv, message }) => byMessage.get(`${env} ${conv} ${message}`),
    hardDeleted: ({ env, conv, message }) => hard.has(`${env} ${conv} ${message}`),
    users: (event) => (event.users ?? []).flatMap((no) => people.get(`${event.env} ${no}`) ?? []),
    actorId: ({ env, actor }) => people.get(`${env} ${actor}`)?.id ?? null,
  };
}

const conversationsOf = (
  db: Queryable,
  places: readonly { env: number; no: number }[],
): Promise<(ConversationRow & { env: number })[]> =>
  places.length === 0
    ? Promise.resolve([])
    : db.query(
        `SELECT c.env, c.no, c.id, c.type, c.name, c.metadata, c.last_seq AS "lastSeq", c.created_at AS "createdAt",
           c.deleted_at AS "deletedAt"
         FROM unnest($1::int[], $2::bigint[]) u(env, no)
         CROSS JOIN LATERAL (SELECT * FROM conversations WHERE env = u.env AND no = u.no LIMIT 1) c`,
        [places.map((p) => p.env), places.map((p) => p.no)],
      );

const membersOf = (
  db: Queryable,
  places: readonly { env: number; no: number }[],
): Promise<{ env: number; conv: number; members: MemberView[] }[]> =>
  places.length === 0
    ? Promise.resolve([])
    : db.query(
        `SELECT m.env, m.conv, json_agg(json_build_object('userId', x.id, 'role', m.role) ORDER BY x.id) AS members
         FROM unnest($1::int[], $2::bigint[]) u(env, no)
         JOIN members m ON m.env = u.env AND m.conv = u.no JOIN users x ON x.env = m.env AND x.no = m.usr
         GROUP BY 1, 2`,
        [places.map((p) => p.env), places.map((p) => p.no)],
      );

function distinct<T extends object>(list: readonly T[]): T[] {
  return [...new Map(list.map((x) => [Object.values(x).join(' '), x])).values()];
}
