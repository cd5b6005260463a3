import { ApiError, limits } from '@parley/protocol';
import type { EventRecord, Input, Output } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { Context } from '../context.ts';
import { readable } from '../conversations/access.ts';
import { listMemberViews, viewConversation } from '../conversations/sql.ts';
import type { ConversationRow } from '../conversations/sql.ts';
import { viewMessage } from '../messages/sql.ts';
import type { MessageRow } from '../messages/sql.ts';
import { pageLimit } from '../pages.ts';

interface EventRow extends MessageRow {
  eventSeq: number;
  type: string;
  at: string;
  userIds: string[] | null;
  actorId: string | null;
  data: string | null;
}

/** Message rows are their own message.new events; all others are in `events`. Ids are resolved on reading, so erased users stay erased. */
const rangeSql = `
  SELECT s.seq AS "eventSeq", s.type, s.at, s.data,
    (SELECT array_agg(x.id ORDER BY t.ord) FROM unnest(s.users) WITH ORDINALITY t(no, ord)
      JOIN users x ON x.env = $1 AND x.no = t.no) AS "userIds",
    a.id AS "actorId",
    m.conv, $5::text AS cid, m.seq, m.id, m.sender, u.id AS "senderId", m.text, m.reply_to AS "replyTo", m.metadata,
    m.attachments, m.version, m.created_at AS "createdAt", m.edited_at AS "editedAt", m.deleted_at AS "deletedAt", m.hard
  FROM (
    SELECT seq, 'message.new' AS type, created_at AS at, NULL::text AS data, NULL::bigint[] AS users,
      NULL::bigint AS actor, seq AS message
    FROM messages WHERE env = $1 AND conv = $2 AND seq > $3 AND seq <= $4
    UNION ALL
    SELECT seq, type, created_at, data, users, actor, message
    FROM events WHERE env = $1 AND conv = $2 AND seq > $3 AND seq <= $4
  ) s
  LEFT JOIN messages m ON m.env = $1 AND m.conv = $2 AND m.seq = s.message
  LEFT JOIN users u ON u.env = $1 AND u.no = m.sender
  LEFT JOIN users a ON a.env = $1 AND a.no = s.actor
  ORDER BY s.seq`;

export async function list(ctx: Context, input: Input<'events.list'>): Promise<Output<'events.list'>> {
  const conv = await readable(ctx, ctx.db, input.conversationId);
  const after = input.after ?? 0;
  const limit = pageLimit(input.limit);
  if (after >= conv.lastSeq) return { data: [], hasMore: false };
  if (conv.lastSeq - after > limits.eventsGap) throw new ApiError('resync_required');
  const floor = new Date(ctx.services.clock.now() - ctx.services.eventRetentionMs).toISOString();
  const data = await readEvents(
    ctx.db,
    ctx.env.no,
    conv,
    after,
    Math.min(after + limit, conv.lastSeq),
    floor,
  );
  return { data, hasMore: after + data.length < conv.lastSeq };
}

/** Events of a conversation with after < seq <= upTo; `resync_required` when the first is older than `floor` or gone. */
export async function readEvents(
  db: Queryable,
  env: number,
  conv: ConversationRow,
  after: number,
  upTo: number,
  floor: string,
): Promise<EventRecord[]> {
  const rows = await db.query<EventRow>(rangeSql, [env, conv.no, after, upTo, conv.id]);
  if (rows[0]?.eventSeq !== after + 1 || rows[0].at < floor || rows.length !== upTo - after)
    throw new ApiError('resync_required');
  const members = rows.some((r) => r.type === 'conversation.created')
    ? await listMemberViews(db, env, conv.no)
    : [];
  return rows.map(
    (r) =>
      ({
        seq: r.eventSeq,
        type: r.type,
        createdAt: r.at,
        ...details(r, () => viewConversation({ ...conv, lastSeq: r.eventSeq }, members)),
      }) as EventRecord,
  );
}

function details(row: EventRow, conversation: () => unknown): object {
  const data = row.data === null ? {} : (JSON.parse(row.data) as Record<string, unknown>);
  const userId = row.userIds?.[0];
  const { actorId } = row;
  switch (row.type) {
    case 'message.new':
    case 'message.updated':
      return { message: viewMessage(row) };
    case 'message.deleted':
      return { id: row.id, deletedAt: row.deletedAt, hard: row.hard && data['hard'] === true };
    case 'member.added':
      return { userIds: row.userIds ?? [], userId, actorId };
    case 'member.removed':
      return { userId, actorId, reason: data['reason'] };
    case 'member.updated':
      return { userId, role: data['role'], actorId };
    case 'conversation.created':
      return { conversation: conversation() };
    case 'conversation.updated':
      return { changes: data, actorId };
    default:
      return {};
  }
}
