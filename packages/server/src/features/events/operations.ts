import { ApiError, limits } from '@parley/protocol';
import type { EventName, EventRecord, Input, Output } from '@parley/protocol';
import { catalogue } from '../../log/catalogue.ts';
import type { Told } from '../../log/catalogue.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { noteReading } from '../audit/content.ts';
import type { Context } from '../context.ts';
import { readable } from '../conversations/access.ts';
import type { ConversationRow } from '../conversations/sql.ts';
import { messagesBetween, viewMessage } from '../sql/message-reader.ts';
import { fitting, pageLimit } from '../pages.ts';
import { loadReferences } from './references.ts';
import { storedEvents } from './sql.ts';

export async function list(ctx: Context, input: Input<'events.list'>): Promise<Output<'events.list'>> {
  const conv = await readable(ctx, ctx.db, input.conversationId);
  await noteReading(ctx, conv);
  const limit = pageLimit(input.limit);
  const floor = new Date(
    ctx.services.clock.now() - (await ctx.services.storage.retentionMs(ctx.env.no)),
  ).toISOString();
  const user = ctx.caller.user?.no ?? null;
  const end = Math.min((input.before ?? Infinity) - 1, conv.lastSeq);
  // The same rule as for messages: `before` alone gives the page just below it; otherwise the page is just above
  // `after`, up to `before` if it is given.
  if (input.before !== undefined && input.after === undefined) {
    if (end < 1) return { data: [], hasMore: false };
    const found = reachable(
      await eventsBetween(ctx.db, ctx.env.no, conv, Math.max(0, end - limit), end, user),
      end,
      floor,
    );
    const data = found.slice(0, fitting(found)).reverse();
    return { data, hasMore: data[0]!.seq > 1 };
  }
  const after = input.after ?? 0;
  if (after >= end) return { data: [], hasMore: false };
  if (end - after > limits.eventsGap) throw new ApiError('resync_required');
  const found = await readEvents(ctx.db, ctx.env.no, conv, after, Math.min(after + limit, end), floor, user);
  const data = found.slice(0, fitting(found));
  return { data, hasMore: after + data.length < end };
}

/**
 * Going back, the page ends where the buffer does. Returns the newest first; throws `resync_required` if there is not
 * even one.
 */
function reachable(records: EventRecord[], end: number, floor: string): EventRecord[] {
  const found: EventRecord[] = [];
  for (let i = records.length - 1, seq = end; i >= 0; i--, seq--) {
    const record = records[i];
    if (record?.seq !== seq || record.createdAt < floor) break;
    found.push(record);
  }
  if (found.length === 0) throw new ApiError('resync_required');
  return found;
}

type Place = Pick<ConversationRow, 'no' | 'id'>;

/**
 * Events of a conversation with after < seq <= upTo. Throws `resync_required` if the first is older than `floor` or
 * any is missing.
 * @param user whose own reactions the records show.
 */
export async function readEvents(
  db: Queryable,
  env: number,
  conv: Place,
  after: number,
  upTo: number,
  floor: string,
  user: number | null = null,
): Promise<EventRecord[]> {
  const records = await eventsBetween(db, env, conv, after, upTo, user);
  const [first] = records;
  if (first?.seq !== after + 1 || first.createdAt < floor || records.length !== upTo - after)
    throw new ApiError('resync_required');
  return records;
}

/**
 * The events that are stored, with what they refer to. A message row is its own message.new event; all others are
 * rows in `events`. What they refer to is shown as it is now, so erased users stay erased.
 */
async function eventsBetween(
  db: Queryable,
  env: number,
  conv: Place,
  after: number,
  upTo: number,
  user: number | null,
): Promise<EventRecord[]> {
  const [messages, events] = await Promise.all([
    messagesBetween(db, env, conv.no, after, upTo),
    storedEvents(db, env, conv.no, after, upTo),
  ]);
  const records = messages.map((m) =>
    recordOf('message.new', conv.id, m.seq, m.createdAt, null, { message: viewMessage(m) }),
  );
  if (events.length > 0) {
    const references = await loadReferences(db, events, user);
    for (const event of events) {
      const message = references.message(event);
      if (event.message !== null && !message) continue;
      const told = {
        message,
        users: references.users(event),
        conversation: references.conversation(event),
        reactions: references.reactions(event),
        data: event.data === null ? {} : (JSON.parse(event.data) as unknown),
      };
      // Which of these fields an event has depends on its type.
      records.push(
        recordOf(event.type, conv.id, event.seq, event.at, references.actorId(event), told as never),
      );
    }
    records.sort((a, b) => a.seq - b.seq);
  }
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
