import { messageRevision } from '../../platform/history/port.ts';
import type {
  ConversationRecord,
  HistoryRecord,
  MemberRecord,
  MessageRecord,
} from '../../platform/history/port.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { hasReactions } from '../sql/flags.ts';
import { messagesAt, viewExtras } from '../sql/message-reader.ts';
import { reactionsAt, viewReactions } from '../sql/reaction-reader.ts';
import type { ReactionsRow } from '../sql/reaction-reader.ts';
import type { CopiedRow, MessagePlace } from '../sql/message-reader.ts';
import { conversationsWithPeople } from './sql/copy.ts';
import type { LogRow } from './sql/sink.ts';

/**
 * What is written to a customer's database: the present state of things, each with a revision that grows with every
 * change.
 */

/** A record and its place in our store; `message` is 0 for a conversation and its members. */
export interface Placed {
  record: HistoryRecord;
  conv: number;
  message: number;
}

/** Counts only: what a database gets names no user. */
const countsOf = (row: ReactionsRow | undefined) => {
  if (!row || row.total === 0) return {};
  const { total, counts, votes } = viewReactions(row);
  return {
    reactions: {
      total,
      counts: counts.map(({ emoji, count }) => ({ emoji, count })),
      ...(votes ? { votes: votes.map(({ option, count }) => ({ option, count })) } : {}),
    },
  };
};

/** It names no user: of mentions there are the ranges, of reactions the counts. */
function recordExtras(row: CopiedRow, reactions: ReactionsRow | undefined): string | null {
  const { mentions, ...others } = viewExtras(row);
  const extras = {
    ...(mentions ? { mentions: mentions.map(({ userId: _, ...mention }) => mention) } : {}),
    ...others,
    ...countsOf(reactions),
  };
  return Object.keys(extras).length === 0 ? null : JSON.stringify(extras);
}

export const messageRecord = (
  row: CopiedRow,
  conversationId: string,
  reactions?: ReactionsRow,
): MessageRecord => {
  const gone = row.deletedAt !== null;
  return {
    kind: 'message',
    id: row.id,
    conversationId,
    seq: row.seq,
    senderId: row.senderId,
    text: gone ? null : row.text,
    replyTo: gone ? null : row.replyTo,
    attachments: gone ? null : row.attachments,
    metadata: gone ? null : row.metadata,
    extras: gone ? null : recordExtras(row, reactions),
    version: row.version,
    createdAt: row.createdAt,
    editedAt: row.editedAt,
    deletedAt: row.deletedAt,
    hard: row.hard,
    revision: messageRevision({ ...row, reactions: reactions?.revision ?? 0 }),
  };
};

/**
 * Conversations with their members, and with users who are no longer members since the given time, or, for a copy, at
 * any time: the database may still have them as members.
 */
export async function conversationRecords(
  db: Queryable,
  env: number,
  convs: number[],
  since = '-infinity',
): Promise<Placed[]> {
  if (convs.length === 0) return [];
  const rows = await conversationsWithPeople(db, env, convs, since);
  return rows.flatMap(({ no, people, lastSeq, ...row }): Placed[] => {
    const { id, type, name, metadata, rules, createdAt, deletedAt } = row;
    const conversation: ConversationRecord = {
      kind: 'conversation',
      id,
      type,
      name,
      metadata,
      extras: rules === null ? null : `{"rules":${rules}}`,
      createdAt,
      deletedAt,
      revision: lastSeq,
    };
    const members = (people ?? []).map(([userId, role]): MemberRecord => ({
      kind: 'member',
      conversationId: id,
      userId,
      role: role ?? 'member',
      removed: role === null,
      extras: null,
      revision: lastSeq,
    }));
    return [conversation, ...members].map((record) => ({ record, conv: no, message: 0 }));
  });
}

/** Reactions by the conversation and seq of their message; only conversations that have some are asked about. */
export const reactionsOf = async (
  db: Queryable,
  env: number,
  messages: readonly (Omit<MessagePlace, 'env'> & { flags: number })[],
): Promise<Map<string, ReactionsRow>> => {
  const places = messages.filter(hasReactions).map(({ conv, seq }) => ({ env, conv, seq }));
  return new Map((await reactionsAt(db, places)).map((r) => [`${r.conv} ${r.seq}`, r]));
};

/** The records that rows of the log are about, each once. A message that is cold already has not changed. */
export async function recordsOf(db: Queryable, env: number, rows: readonly LogRow[]): Promise<Placed[]> {
  const places = new Map(
    rows
      .filter((r) => r.message !== null)
      .map((r) => [`${r.conv} ${r.message}`, { env, conv: r.conv, seq: r.message! }]),
  );
  const events = rows.filter((r) => r.message === null);
  const messages = await messagesAt(db, [...places.values()]);
  const reactions = await reactionsOf(db, env, messages);
  // Not by the events themselves: a database may be away for longer than they are kept.
  const since = events.map((r) => r.at).sort()[0];
  const conversations = await conversationRecords(db, env, [...new Set(events.map((r) => r.conv))], since);
  return [
    ...conversations,
    ...messages.map((m): Placed => ({
      record: messageRecord(m, m.cid, reactions.get(`${m.conv} ${m.seq}`)),
      conv: m.conv,
      message: m.seq,
    })),
  ];
}
