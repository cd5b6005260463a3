import { ApiError } from '@parley/protocol';
import type { Attachment, Input, Message, MessageOrTombstone, Output, Tombstone } from '@parley/protocol';
import { notFound } from '../../platform/api-errors.ts';
import type { LogEvent } from '../../log/events.ts';
import type { LockedConversation } from '../../log/sql/lock.ts';
import { liveEvent, record } from '../../log/record.ts';
import type { MessageRecord } from '../../platform/history/port.ts';
import type { Lines } from '../../platform/flow/lines.ts';
import type { Queryable, Tx } from '../../platform/postgres/db.ts';
import { noteReading, noteSending } from '../audit/content.ts';
import { Change } from '../context.ts';
import type { Context } from '../context.ts';
import { lockForChange, moderates, readable } from '../conversations/access.ts';
import { membershipOf } from '../conversations/sql/members.ts';
import type { LockedAccess } from '../conversations/access.ts';
import type { SeenConversation } from '../conversations/sql.ts';
import { storeExtras } from '../extras.ts';
import { happened } from '../happenings.ts';
import { pageLimit } from '../pages.ts';
import { reportsOn } from '../words/check.ts';
import { thawMessages } from '../storage/thaw.ts';
import * as cold from './cold.ts';
import { repeatKey } from './draft.ts';
import type { Draft, SendInput } from './draft.ts';
import { applyPolicies } from './policies.ts';
import * as reader from '../sql/message-reader.ts';
import type { MessageRow } from '../sql/message-reader.ts';
import { withPins } from '../sql/pin-reader.ts';
import { withReactions } from '../sql/reaction-reader.ts';
import * as sql from './sql.ts';

export const missing = () => notFound('Message');

/**
 * Commits a message. A repeated clientMsgId commits nothing: the answer is the original message, in its present state
 * if the sender is still a member.
 */
export async function send(ctx: Context, given: SendInput): Promise<MessageOrTombstone> {
  const { log, ids } = ctx.services;
  const line = enterLine(ctx, given);
  let draft: Draft;
  try {
    draft = await applyPolicies(ctx, given);
    await line?.turn;
  } catch (error) {
    line?.leave();
    throw error;
  }
  const { input, sender, extras: kept, reported } = draft;
  const extras = storeExtras(kept);
  const files = input.attachments?.length ? input.attachments : null;
  const empty = Object.keys(input.metadata ?? {}).length === 0;
  const id = ids.make('message');
  const metadata = empty ? null : JSON.stringify(input.metadata);
  const { active } = ctx.services.analytics;
  const append = () =>
    log.append({
      env: ctx.env.no,
      conversationId: input.conversationId,
      sender: sender?.no ?? null,
      own: ctx.caller.user !== null,
      clientMsgId: input.clientMsgId ?? repeatKey(ctx),
      id,
      text: input.text ?? null,
      replyTo: input.replyTo ?? null,
      metadata,
      attachments: files && JSON.stringify(files),
      ...(extras === null ? {} : { extras }),
      ...(reported && reportsOn(ctx.env) ? { reported } : {}),
    });
  const appending = append();
  line?.leave();
  const appended = await appending.catch(async (error: unknown) => {
    // The message that is replied to may be in the customer's database.
    const unknown = error instanceof ApiError && error.param === 'replyTo' && input.replyTo !== undefined;
    if (!unknown || !(await cold.fetchBack(ctx, input.replyTo!, input.conversationId))) throw error;
    return append();
  });
  await noteSending(ctx, input, sender);
  if (appended.status === 'duplicate') {
    const [here] = await reader.messagesAt(ctx.db, [
      { env: ctx.env.no, conv: appended.conv, seq: appended.seq },
    ]);
    const original = here ?? (await coldOriginal(ctx, input.conversationId, appended.seq));
    // A repeat means that the first answer, and perhaps the event, was lost. Clients that have the event already
    // ignore it.
    log.publish(createdEvent({ ...original, env: ctx.env.no }, input.clientMsgId ?? null));
    return (await stillSees(ctx, appended.conv)) ? reader.viewMessage(original) : acknowledged(original);
  }
  const message: Message = {
    id,
    conversationId: input.conversationId,
    seq: appended.seq,
    senderId: sender?.id ?? null,
    text: input.text ?? null,
    replyTo: input.replyTo ?? null,
    attachments: appended.attachments === null ? [] : (JSON.parse(appended.attachments) as Attachment[]),
    metadata: empty ? {} : input.metadata!,
    version: 1,
    createdAt: appended.at,
    editedAt: null,
    deletedAt: null,
    ...(kept.mentions ? { mentions: input.mentions! } : {}),
    ...(kept.poll ? { poll: kept.poll } : {}),
  };
  const conv = { env: ctx.env.no, no: appended.conv, id: input.conversationId };
  log.publish(
    liveEvent(conv, appended.seq, {
      type: 'message.new',
      actor: sender,
      message,
      clientMsgId: input.clientMsgId ?? null,
    }),
  );
  if (sender) await active.acted(ctx.env, sender.no);
  return message;
}

/**
 * hooks#order: while a hook decides, messages of one sender to one conversation must not overtake each other. They are
 * decided on at the same time and appended in order.
 */
function enterLine({ env, caller, services }: Context, given: SendInput): ReturnType<Lines['enter']> | null {
  if (env.hooks === 0) return null;
  return services.hooks.lines.enter(
    `${env.no} ${given.conversationId} ${caller.user?.id ?? given.senderId ?? ''}`,
  );
}

const createdEvent = (row: MessageRow & { env: number }, clientMsgId?: string | null): LogEvent =>
  liveEvent({ env: row.env, no: row.conv, id: row.cid }, row.seq, {
    type: 'message.new',
    actor: null,
    message: reader.viewMessage(row),
    clientMsgId,
  });

/** Those of the messages that were committed, as events. It serves commits whose answer never arrived. */
export const committedMessages = async (
  db: Queryable,
  messages: readonly { env: number; id: string }[],
): Promise<LogEvent[]> => (await reader.messagesById(db, messages)).map((row) => createdEvent(row));

/** The original of a repeated clientMsgId that is in the customer's database. */
async function coldOriginal(ctx: Context, conversationId: string, seq: number): Promise<MessageRow> {
  const [row] = await cold.completed(ctx, await cold.placed(ctx, conversationId, seq));
  if (!row) throw missing();
  return row;
}

const stillSees = async (ctx: Context, conv: number): Promise<boolean> =>
  !ctx.caller.user || (await membershipOf(ctx.db, ctx.env.no, conv, ctx.caller.user.no)) !== undefined;

/**
 * The answer to a sender who has left since: what was acknowledged at first, without the content or the present state
 * of the message.
 */
const acknowledged = (row: MessageRow): Message => {
  const none = { text: null, replyTo: null, attachments: null, metadata: null, extras: null, mentions: null };
  return reader.viewLive({ ...row, ...none, version: 1, editedAt: null });
};

export async function list(ctx: Context, input: Input<'messages.list'>): Promise<Output<'messages.list'>> {
  const limit = pageLimit(input.limit);
  const { conversationId } = input;
  const env = ctx.env.no;
  const allowed = readable(ctx, ctx.db, conversationId).then(async (conv) => {
    await noteReading(ctx, conv);
    return conv;
  });
  const complete = async (messages: MessageOrTombstone[]) => withExtras(ctx, await allowed, messages);
  // `after` alone gives the page just above it; `before` gives the page just below, down to `after` if that is given
  // too.
  if (input.after !== undefined && input.before === undefined) {
    const { data, more } = await cold.page(ctx, allowed, { start: input.after, limit }, (from) =>
      reader.messagesAfter(ctx.db, env, conversationId, from, limit + 1),
    );
    return { data: await complete(data.reverse()), hasMore: more };
  }
  const start = input.before ?? Number.MAX_SAFE_INTEGER;
  const { data, more } = await cold.page(ctx, allowed, { start, limit }, (from) =>
    reader.messagesBefore(ctx.db, env, conversationId, from, input.after ?? 0, limit + 1),
  );
  return { data: await complete(data), hasMore: more };
}

export async function get(ctx: Context, input: Input<'messages.get'>): Promise<MessageOrTombstone> {
  const row = await findAnywhere(ctx, input.messageId);
  const conv = await readableMessage(ctx, row);
  await noteReading(ctx, conv);
  const [message] = await withExtras(ctx, conv, [reader.viewMessage(row)]);
  return message!;
}

/** Adds what extensions show of messages of one conversation, as the caller sees it. */
export async function withExtras(
  { db, env, caller }: Context,
  conv: Pick<SeenConversation, 'no' | 'flags'>,
  messages: MessageOrTombstone[],
): Promise<MessageOrTombstone[]> {
  const reacted = await withReactions(db, env.no, conv, caller.user?.no ?? null, messages);
  return withPins(db, env.no, conv, reacted);
}

/** The message, which may be in the customer's database. Whether the caller may read it is not checked yet. */
export async function findAnywhere(ctx: Context, id: string): Promise<MessageRow> {
  const row = (await reader.findMessage(ctx.db, ctx.env.no, id)) ?? (await cold.find(ctx, id));
  if (!row) throw missing();
  return row;
}

/** Checks that the caller may read the message's conversation; otherwise the message counts as not found. */
export async function readableMessage(ctx: Context, row: MessageRow): Promise<SeenConversation> {
  return readable(ctx, ctx.db, row.cid).catch(asMissing);
}

/** Who does not find the conversation does not find its message. */
function asMissing(error: unknown): never {
  throw error instanceof ApiError && error.code === 'not_found' ? missing() : error;
}

export async function remove(ctx: Context, input: Input<'messages.delete'>): Promise<Change<Tombstone>> {
  const hard = input.hard ?? false;
  if (hard && ctx.caller.user)
    throw new ApiError('forbidden', { param: 'hard', message: 'Only a server may delete for good.' });
  return withMessage(ctx, input.messageId, (tx, locked) => removeLocked(ctx, tx, locked, hard));
}

export async function removeLocked(
  ctx: Context,
  tx: Tx,
  { access, row }: LockedMessage,
  hard: boolean,
): Promise<Change<Tombstone>> {
  if (row.sender !== access.actor?.no && !moderates(access))
    throw new ApiError('forbidden', {
      message: 'Only the author, a moderator or the owner may delete a message.',
    });
  if (row.deletedAt && !hard)
    return new Change(200, reader.viewTombstone(row), await sql.deletionSeq(tx, ctx.env.no, row));
  const { lockedAt } = access.conv;
  if (!hard) await happened(ctx, tx, 'messageChanges', { env: ctx.env.no, row });
  await emptyMessages(ctx, tx, access.conv, { seqs: [row.seq], ids: [row.id], hard });
  const tombstone = reader.viewTombstone({ ...row, deletedAt: row.deletedAt ?? lockedAt });
  const [seq] = await record(ctx.services.log, tx, access.conv, [
    { type: 'message.deleted', actor: access.actor, message: tombstone, data: { hard } },
  ]);
  return new Change(hard ? 204 : 200, tombstone, seq!);
}

/**
 * Empties messages of a locked conversation, which loses what other features keep of them too. `ids` are those of the
 * messages that this store holds.
 */
export async function emptyMessages(
  ctx: Pick<Context, 'services'>,
  tx: Tx,
  conv: LockedConversation,
  messages: { seqs: number[]; ids: string[]; hard: boolean },
): Promise<void> {
  const { env, no, lockedAt } = conv;
  const emptied = await sql.emptyMessages(tx, env, no, messages.seqs, messages.hard, lockedAt);
  await happened(ctx, tx, 'messagesEmptied', { env, conv: no, flags: conv.flags, emptied, ...messages });
}

export interface LockedMessage {
  access: LockedAccess;
  row: MessageRow;
}

/**
 * Runs in one transaction with the message's conversation locked. A message that only the customer's database has is
 * moved back first.
 */
export async function withMessage<T>(
  ctx: Context,
  id: string,
  change: (tx: Tx, locked: LockedMessage) => Promise<T>,
): Promise<T> {
  for (let look = 1; ; look++) {
    const place = await locate(ctx, id);
    if (!place) throw missing();
    const done = await ctx.db.tx(async (tx) => {
      const locked = await lockMessage(ctx, tx, id, place);
      return locked && { result: await change(tx, locked) };
    });
    if (done) return done.result;
    // It may have left our store between the two queries.
    if (look === 2) throw missing();
  }
}

/** Where a message is before its conversation is locked; the record if only the customer's database has it. */
export interface Located {
  conversation: number | string;
  record: MessageRecord | null;
}

/** Null if there is no such message. */
export async function locate(ctx: Context, id: string): Promise<Located | null> {
  const found = await reader.findMessage(ctx.db, ctx.env.no, id);
  if (found) return { conversation: found.conv, record: null };
  const record = await ctx.services.storage.cold.get(ctx.env, id);
  return record && { conversation: record.conversationId, record };
}

export async function lockMessage(
  ctx: Context,
  tx: Tx,
  id: string,
  { conversation, record }: Located,
): Promise<LockedMessage | null> {
  const place = typeof conversation === 'number' ? { no: conversation } : conversation;
  const access = await lockForChange(ctx, tx, place).catch(asMissing);
  if (record) await thawMessages(tx, ctx.env.no, access.conv.no, [record]);
  // Read again under the lock: the first query only told which conversation to lock.
  const row = await reader.findMessage(tx, ctx.env.no, id);
  return row ? { access, row } : null;
}
