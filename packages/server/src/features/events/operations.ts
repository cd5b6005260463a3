import { ApiError, limits } from '@parley/protocol';
import type { EventName, EventRecord, Input, Output } from '@parley/protocol';
import { catalogue } from '../../log/catalogue.ts';
import type { Told } from '../../log/catalogue.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { noteReading } from '../audit/content.ts';
import type { Context } from '../context.ts';
import { readable } from '../conversations/access.ts';
import type { ConversationRow } from '../conversations/sql.ts';
import { messagesBetween, viewMessage } from '../messages/reader.ts';
import { fitting, pageLimit } from '../pages.ts';
import { loadReferences } from './references.ts';
import type { KeptEvent } from './references.ts';

export async function list(ctx: Context, input: Input<'events.list'>): Promise<Output<'events.list'>> {
  const conv = await readable(ctx, ctx.db, input.conversationId);
  await noteReading(ctx, conv);
  const after = input.after ?? 0;
  const limit = pageLimit(input.limit);
  if (after >= conv.lastSeq) return { data: [], hasMore: false };
  if (conv.lastSeq - after > limits.eventsGap) throw new ApiError('resync_required');
  const floor = new Date(ctx.services.clock.now() - ctx.services.eventRetentionMs).toISOString();
  const found = await readEvents(
    ctx.db,
    ctx.env.no,
    conv,
    after,
    Math.min(after + limit, conv.lastSeq),
    floor,
  );
  const data = found.slice(0, await fitting(found));
  return { data, hasMore: after + data.length < conv.lastSeq };
}

interface EventRow extends KeptEvent {
  seq: number;
  type: EventName;
  at: string;
}

/**
 * Events of a conversation with after < seq <= upTo; `resync_required` when the first is older than `floor`, or one or what it tells of is gone. Message rows
 * are their own message.new events, all others are in `events`. What they refer to is shown as it is now, so erased users stay erased.
 */
export async function readEvents(
  db: Queryable,
  env: number,
  conv: Pick<ConversationRow, 'no' | 'id'>,
  after: number,
  upTo: number,
  floor: string,
): Promise<EventRecord[]> {
  const [messages, events] = await Promise.all([
    messagesBetween(db, env, conv.no, after, upTo),
    db.query<EventRow>(
      `SELECT env, conv, seq, type, message, users, actor, data, created_at AS at FROM events
       WHERE env = $1 AND conv = $2 AND seq > $3 AND seq <= $4`,
      [env, conv.no, after, upTo],
    ),
  ]);
  const records = messages.map((m) =>
    recordOf('message.new', conv.id, m.seq, m.createdAt, null, { message: viewMessage(m) }),
  );
  if (events.length > 0) {
    const references = await loadReferences(db, events);
    for (const event of events) {
      const message = references.message(event);
      if (event.message !== null && !message) throw new ApiError('resync_required');
      const told = {
        message,
        users: references.users(event),
        conversation: references.conversation(event),
        data: event.data === null ? {} : (JSON.parse(event.data) as unknown),
      };
      // The type says which of these its row has.
      records.push(
        recordOf(event.type, conv.id, event.seq, event.at, references.actorId(event), told as never),
      );
    }
    records.sort((a, b) => a.seq - b.seq);
  }
  const [first] = records;
  if (first?.seq !== after + 1 || first.createdAt < floor || records.length !== upTo - after)
    throw new ApiError('resync_required');
  return records;
}

function recordOf<K extends EventName>(
  type: K,
  cid: string,
  seq: number,
  createdAt: string,
  actorId: string | null,
  told: Told[K],
): EventRecord {
  const d = catalogue[type].d({ ...told, cid, seq, actorId });
  return { seq, type, createdAt, ...d } as EventRecord;
}
