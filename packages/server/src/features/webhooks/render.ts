import type { WebhookEventName, WebhookEvents } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { Vault } from '../../platform/secrets.ts';
import { viewConversation } from '../conversations/sql.ts';
import type { ConversationRow, MemberView } from '../conversations/sql.ts';
import { viewMessage } from '../messages/sql.ts';
import type { MessageRow } from '../messages/sql.ts';
import { erasedContext } from './signature.ts';

/**
 * What is sent, rendered from the store as it is now: an edited message shows its new version, a deleted one its tombstone,
 * an erased user its alias. Only the id, type and time of the event are fixed.
 */

export interface Renderable {
  no: number;
  env: number;
  envId: string;
  endpointId: string;
  eventId: string;
  type: string;
  conv: number | null;
  seq: number | null;
  message: number | null;
  users: number[] | null;
  actor: number | null;
  data: string | null;
  sealed: Buffer | null;
  eventAt: string;
}

export const testEvent = 'webhook.test';

/** Bodies by delivery; one that is missing can no longer be rendered. */
export async function render(
  db: Queryable,
  vault: Vault,
  rows: readonly Renderable[],
): Promise<Map<number, string>> {
  const facts = await loadFacts(db, rows);
  const bodies = new Map<number, string>();
  for (const row of rows) {
    const data = dataOf(row, facts, vault);
    if (data === null) continue;
    bodies.set(
      row.no,
      JSON.stringify({ id: row.eventId, type: row.type, createdAt: row.eventAt, env: row.envId, data }),
    );
  }
  return bodies;
}

interface Facts {
  conversation(env: number, no: number | null): (ConversationRow & { members: MemberView[] }) | undefined;
  message(env: number, conv: number | null, seq: number | null): MessageRow | undefined;
  userId(env: number, no: number | null): string | null;
}

function dataOf(row: Renderable, facts: Facts, vault: Vault): object | null {
  const { env, conv, seq } = row;
  const details = (row.data === null ? {} : JSON.parse(row.data)) as Record<string, unknown>;
  if (row.type === testEvent) return { webhookId: row.endpointId };
  if (row.type === 'user.deleted' && row.sealed)
    return {
      userId: vault.open(row.sealed, erasedContext(env)).toString(),
      messages: details['messages'] as 'anonymize' | 'delete',
    } satisfies WebhookEvents['user.deleted'];
  const conversation = facts.conversation(env, conv);
  if (!conversation) return null;
  const message = facts.message(env, conv, row.message);
  const users = (row.users ?? []).map((no) => facts.userId(env, no)!);
  const actorId = facts.userId(env, row.actor);
  const at = { conversationId: conversation.id, seq: seq! };
  switch (row.type as WebhookEventName) {
    case 'message.created':
    case 'message.updated':
      return message ? { ...at, message: viewMessage(message) } : null;
    case 'message.deleted':
      return message ? { ...at, messageId: message.id, hard: details['hard'] === true } : null;
    case 'conversation.created':
      return { conversation: viewConversation({ ...conversation, lastSeq: seq! }, conversation.members) };
    case 'conversation.updated':
      return {
        conversation: viewConversation({ ...conversation, lastSeq: seq! }, conversation.members),
        changes: details,
      };
    case 'conversation.deleted':
      return { conversationId: conversation.id };
    case 'member.added':
      return { ...at, userIds: users, actorId };
    case 'member.removed':
      return { ...at, userId: users[0], actorId, reason: details['reason'] };
    case 'message.read':
      return { conversationId: conversation.id, userId: users[0], lastReadSeq: seq };
    case 'notification.needed':
      return message ? { conversationId: conversation.id, messageId: message.id, recipientIds: users } : null;
    default:
      return null;
  }
}

const withMembers = new Set(['conversation.created', 'conversation.updated']);

/** Everything that the rows refer to, in four queries whatever their number. */
async function loadFacts(db: Queryable, rows: readonly Renderable[]): Promise<Facts> {
  const convRows = rows.filter((r) => r.conv !== null);
  const convs = distinct(convRows.map((r) => [r.env, r.conv!]));
  const messages = distinct(
    convRows.filter((r) => r.message !== null).map((r) => [r.env, r.conv!, r.message!]),
  );
  const users = distinct(
    rows.flatMap((r) => [...(r.users ?? []), ...(r.actor === null ? [] : [r.actor])].map((u) => [r.env, u])),
  );
  const listed = distinct(convRows.filter((r) => withMembers.has(r.type)).map((r) => [r.env, r.conv!]));
  const column = (list: number[][], i: number) => list.map((x) => x[i]!);

  const [convFound, messageFound, userFound, memberFound] = await Promise.all([
    convs.length === 0
      ? []
      : db.query<ConversationRow & { env: number }>(
          `SELECT c.env, c.no, c.id, c.type, c.name, c.metadata, c.last_seq AS "lastSeq", c.created_at AS "createdAt",
             c.deleted_at AS "deletedAt"
           FROM unnest($1::int[], $2::bigint[]) u(env, no) JOIN conversations c ON c.env = u.env AND c.no = u.no`,
          [column(convs, 0), column(convs, 1)],
        ),
    messages.length === 0
      ? []
      : db.query<MessageRow & { env: number }>(
          `SELECT m.env, m.conv, c.id AS cid, m.seq, m.id, m.sender, s.id AS "senderId", m.text, m.reply_to AS "replyTo",
             m.metadata, m.attachments, m.version, m.created_at AS "createdAt", m.edited_at AS "editedAt",
             m.deleted_at AS "deletedAt", m.hard
           FROM unnest($1::int[], $2::bigint[], $3::bigint[]) u(env, conv, seq)
           JOIN messages m ON m.env = u.env AND m.conv = u.conv AND m.seq = u.seq
           JOIN conversations c ON c.env = m.env AND c.no = m.conv
           LEFT JOIN users s ON s.env = m.env AND s.no = m.sender`,
          [column(messages, 0), column(messages, 1), column(messages, 2)],
        ),
    users.length === 0
      ? []
      : db.query<{ env: number; no: number; id: string }>(
          'SELECT x.env, x.no, x.id FROM unnest($1::int[], $2::bigint[]) u(env, no) JOIN users x ON x.env = u.env AND x.no = u.no',
          [column(users, 0), column(users, 1)],
        ),
    listed.length === 0
      ? []
      : db.query<{ env: number; conv: number; members: MemberView[] }>(
          `SELECT m.env, m.conv, json_agg(json_build_object('userId', x.id, 'role', m.role) ORDER BY x.id) AS members
           FROM unnest($1::int[], $2::bigint[]) u(env, no)
           JOIN members m ON m.env = u.env AND m.conv = u.no JOIN users x ON x.env = m.env AND x.no = m.usr
           GROUP BY 1, 2`,
          [column(listed, 0), column(listed, 1)],
        ),
  ]);

  const members = new Map(memberFound.map((r) => [`${r.env} ${r.conv}`, r.members]));
  const conversations = new Map(
    convFound.map((c) => [`${c.env} ${c.no}`, { ...c, members: members.get(`${c.env} ${c.no}`) ?? [] }]),
  );
  const byMessage = new Map(messageFound.map((m) => [`${m.env} ${m.conv} ${m.seq}`, m]));
  const userIds = new Map(userFound.map((u) => [`${u.env} ${u.no}`, u.id]));
  return {
    conversation: (env, no) => conversations.get(`${env} ${no}`),
    message: (env, conv, seq) => byMessage.get(`${env} ${conv} ${seq}`),
    userId: (env, no) => userIds.get(`${env} ${no}`) ?? null,
  };
}

function distinct(list: number[][]): number[][] {
  return [...new Map(list.map((x) => [x.join(' '), x])).values()];
}
