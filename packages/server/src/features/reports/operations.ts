import { ApiError } from '@parley/protocol';
import type { Input, Output, ReportAction, ReportCase, ReportDecision } from '@parley/protocol';
import { invalid, notFound } from '../../platform/api-errors.ts';
import { tell } from '../../log/record.ts';
import { lockConversationByNo } from '../../log/sql/lock.ts';
import { joined } from '../../platform/postgres/db.ts';
import type { Tx } from '../../platform/postgres/db.ts';
import { noteReadings } from '../audit/content.ts';
import { record } from '../audit/operations.ts';
import { Reply } from '../context.ts';
import type { Context } from '../context.ts';
import { readable } from '../conversations/access.ts';
import * as restrictions from '../conversations/restrictions.ts';
import { findConversation } from '../conversations/sql.ts';
import { findAnywhere, locate, lockMessage, readableMessage, removeLocked } from '../messages/operations.ts';
import type { Located } from '../messages/operations.ts';
import { decodeCursor, isString, keyPage, pageLimit } from '../pages.ts';
import { coldAt } from '../sql/message-reader.ts';
import { moment } from '../time.ts';
import { deactivate, visibleUser } from '../users/operations.ts';
import { findUser } from '../users/sql.ts';
import { file, targetData } from './file.ts';
import type { Filing } from './file.ts';
import { openSnapshots } from './snapshot.ts';
import * as sql from './sql.ts';
import type { Case, CaseRow } from './sql.ts';

/** Reports and the review queue (reports.md). */

export async function create(
  ctx: Context,
  input: Input<'reports.create'>,
): Promise<Reply<Output<'reports.create'>>> {
  const about = await seen(ctx, input);
  const filing: Filing = {
    ...about,
    reporter: ctx.caller.user?.no ?? sql.reporters.server,
    reason: input.reason,
    note: input.note ?? null,
  };
  const { id, made } = (await ctx.db.tx((tx) => file(ctx, tx, ctx.env.no, filing)))!;
  return new Reply(made ? 201 : 200, { id, status: 'open' });
}

/** What is reported, if the caller sees it. */
async function seen(
  ctx: Context,
  { messageId, userId, conversationId }: Input<'reports.create'>,
): Promise<Pick<Filing, 'target' | 'said' | 'conversationId'>> {
  const given = [messageId, userId, conversationId].filter((id) => id !== undefined);
  if (given.length !== 1) throw invalid('messageId', 'Give one of messageId, userId and conversationId.');
  const none = { seq: 0, messageId: null, user: null };
  if (messageId !== undefined) {
    const row = await findAnywhere(ctx, messageId);
    await readableMessage(ctx, row);
    if (row.deletedAt) throw notFound('Message');
    return {
      target: { kind: 'message', target: row.conv, seq: row.seq, messageId: row.id, user: row.sender },
      said: row,
      conversationId: row.cid,
    };
  }
  if (conversationId !== undefined) {
    const { no } = await readable(ctx, ctx.db, conversationId);
    return { target: { ...none, kind: 'conversation', target: no }, said: null, conversationId };
  }
  if (ctx.caller.user?.id === userId) throw invalid('userId', 'Nobody can report themselves.');
  const { no } = await visibleUser(ctx, userId!);
  return { target: { ...none, kind: 'user', target: no, user: no }, said: null, conversationId: null };
}

const viewTarget = (row: Case): ReportCase['target'] => ({
  ...targetData(row, row.conversationId),
  userId: row.userId,
});

const actionsOf = ({ actions }: CaseRow): ReportAction[] =>
  actions === null ? [] : (JSON.parse(actions) as ReportAction[]);

export async function list(ctx: Context, input: Input<'reports.list'>): Promise<Output<'reports.list'>> {
  const { db, env, services } = ctx;
  const limit = pageLimit(input.limit);
  const before = input.cursor === undefined ? null : decodeCursor(input.cursor, isString);
  const filter: sql.Filter = { status: input.status };
  if (input.targetUserId !== undefined) {
    const user = await findUser(db, env.no, input.targetUserId);
    if (!user) return { data: [], nextCursor: null };
    filter.user = user.no;
  }
  if (input.conversationId !== undefined) {
    const conv = await findConversation(db, env.no, input.conversationId, null);
    if (!conv) return { data: [], nextCursor: null };
    filter.conv = conv.no;
  }
  const rows = await sql.listCases(db, env.no, filter, before, limit + 1);
  const sealed = await sql.snapshotsOf(
    db,
    env.no,
    rows.filter((row) => row.kind === 'message').map((row) => row.head),
  );
  // Also if nothing is left of the message: notes of reporters quote it.
  await noteReadings(
    ctx,
    'reports.list',
    rows.flatMap(({ kind, target, conversationId }) =>
      kind === 'message' && conversationId !== null ? [{ no: target, id: conversationId }] : [],
    ),
  );
  const snapshots = await openSnapshots(db, services.vault, env.no, sealed);
  return keyPage(
    rows,
    limit,
    (row) => row.head,
    (row): ReportCase => {
      const [snapshot = null, ...laterSnapshots] = snapshots.get(row.head) ?? [];
      const { reports, reasons, firstAt, lastAt, latest, status, resolvedAt, resolvedBy, resolution } = row;
      return {
        id: row.head,
        target: viewTarget(row),
        reports,
        reasons,
        firstAt,
        lastAt,
        snapshot,
        laterSnapshots,
        latest,
        status,
        actions: actionsOf(row),
        resolvedAt,
        resolvedBy,
        resolution,
      };
    },
  );
}

export async function update(ctx: Context, input: Input<'reports.update'>): Promise<ReportDecision> {
  const found = await sql.findCase(ctx.db, ctx.env.no, input.reportId);
  if (!found) throw notFound('Report');
  check(found, input);
  // A message may be in the customer's database, which is asked before anything is locked.
  const message = input.actions?.includes('delete_message') ? await locate(ctx, found.messageId!) : null;
  return ctx.db.tx((tx) => decide(ctx, tx, found, input, message));
}

/** Which actions fit, before anything is done. */
function check(found: Case, { status, actions = [], until }: Input<'reports.update'>): void {
  if (status === 'dismissed' && actions.length > 0)
    throw invalid('actions', 'Whoever dismisses reports does nothing else.');
  if (actions.includes('delete_message') && found.kind !== 'message')
    throw invalid('actions', 'delete_message is for reports of messages.');
  if (actions.includes('ban') && (found.kind !== 'message' || found.conversationType !== 'group'))
    throw invalid('actions', 'ban is for messages in groups; deactivate keeps a user out of everything.');
  const onUser = actions.some((action) => action !== 'delete_message');
  if (onUser && found.userId === null) throw invalid('actions', 'There is no user whom this could concern.');
  if (until != null && !onUser) throw invalid('until', 'Only silence, ban and deactivate have an end.');
}

/** Everything in one transaction: users are locked before conversations, and reports last. */
async function decide(
  ctx: Context,
  tx: Tx,
  found: Case,
  input: Input<'reports.update'>,
  message: Located | null,
): Promise<ReportDecision> {
  const { env, caller, services } = ctx;
  const { status, actions = [] } = input;
  await sql.lockTarget(tx, env.no, found);
  const now = await sql.findCase(tx, env.no, found.head);
  if (now?.status !== 'open')
    throw new ApiError('state_conflict', {
      message: 'Somebody else has decided about it.',
      details: { status: now?.status ?? null },
    });
  const inside: Context = { ...ctx, db: joined(tx) };
  const until = input.until == null ? {} : { until: moment('until', input.until) };
  const user = { userId: found.userId!, ...until };
  if (found.user !== null && actions.length > 0) await sql.lockUser(tx, env.no, found.user);
  // Before calls, which a silence or a deactivation ends for the user.
  if (actions.includes('ban') || message) await lockConversationByNo(tx, env.no, found.target);
  if (actions.includes('silence')) await restrictions.silenceUser(inside, user);
  if (actions.includes('deactivate')) await deactivate(inside, user);
  if (actions.includes('ban'))
    await restrictions.set(inside, { ...user, conversationId: found.conversationId!, kind: 'ban' });
  if (message) await deleteMessage(inside, tx, found, message);
  const { reports, at } = await sql.closeCase(tx, env.no, found.head, {
    status,
    actions,
    note: input.note ?? null,
    by: caller.person?.account.email ?? null,
  });
  const target = viewTarget(found);
  await tell(services.log, tx, env.no, 'report.resolved', {
    users: found.user === null ? [] : [found.user],
    data: { reportId: found.head, ...targetData(found, found.conversationId), status, actions, reports },
  });
  await record(ctx, tx, {
    action: 'reports.update',
    target: found.head,
    before: { status: 'open' },
    after: { status, actions, ...until },
  });
  return { id: found.head, target, reports, status, actions, resolvedAt: at! };
}

/** A message that is gone, or whose conversation is, needs no deletion. */
async function deleteMessage(ctx: Context, tx: Tx, found: Case, message: Located): Promise<void> {
  try {
    const locked = await lockMessage(ctx, tx, found.messageId!, message);
    if (locked) await removeLocked(ctx, tx, locked, false);
    else if (await coldAt(tx, ctx.env.no, { conversationId: found.conversationId!, seq: found.seq }))
      // It moved to the customer's database since: whoever asks again finds it there.
      throw new ApiError('service_unavailable');
  } catch (error) {
    if (!(error instanceof ApiError && error.code === 'not_found')) throw error;
  }
}
