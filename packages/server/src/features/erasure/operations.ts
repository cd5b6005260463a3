import { setTimeout as delay } from 'node:timers/promises';
import { ApiError } from '@parley/protocol';
import { notFound } from '../../platform/api-errors.ts';
import type { Person } from '../../log/catalogue.ts';
import { lockConversationByNo, unlockedConversations } from '../../log/sql/lock.ts';
import type { LockedConversation } from '../../log/sql/lock.ts';
import { record, tell } from '../../log/record.ts';
import { eraseMentions } from '../../log/unread/sql/mentions.ts';
import type { MessageRecord } from '../../platform/history/port.ts';
import type { Db, Tx } from '../../platform/postgres/db.ts';
import { record as note } from '../audit/operations.ts';
import type { Context, Operation } from '../context.ts';
import { happened } from '../happenings.ts';
import { removeFromGroup } from '../conversations/members.ts';
import { convsWithLevel, forgetLevel } from '../conversations/sql.ts';
import { conversationsOf, findMembers } from '../conversations/sql/members.ts';
import { messagesAt, messagesBy, viewTombstone } from '../sql/message-reader.ts';
import { emptyMessages } from '../messages/operations.ts';
import { coldOfErased, eraseReactions } from '../reactions/sql.ts';
import { thawMessages } from '../storage/thaw.ts';
import { requireConfirmation } from '../tenancy/access.ts';
import { subjectOf } from '../users/operations.ts';
import * as users from '../users/sql.ts';
import { erasedContext } from '../webhooks/signature.ts';

/**
 * Erasure (GDPR). The first transaction cuts the person off: the row is renamed to `deleted:<random>`, which renames
 * it everywhere at once, because everything refers to users by number. With `messages=delete`, the messages then go
 * batch by batch, each batch in a transaction of its own; a crash half-way is finished by `resumeErasures`, which finds rows
 * still marked as `erasing`.
 */

/** Messages that are erased in one transaction with the conversation locked: senders there wait for no more than these. */
const batchSize = 50;
/** Messages that lose the user's reactions in one transaction: who deletes one of them waits for no more than these. */
const reactionBatch = 20;
const mentionBatch = 1_000;
/** Conversations that are looked at together whether they are locked. */
const convsAtOnce = 500;

export const erase: Operation<Context, 'users.erase'> = async (ctx, input) => {
  const env = ctx.env.no;
  requireConfirmation(ctx.caller, ctx.env, input.confirm);
  const mode = input.messages ?? 'anonymize';
  const alias = `deleted:${ctx.services.ids.secret(20)}`;
  const eraseId = async (tx: Tx, user: number): Promise<void> =>
    happened(ctx, tx, 'userIdErased', {
      env,
      userId: input.userId,
      convs: await conversationsOf(tx, env, user),
    });
  const user = await ctx.db.tx(async (tx) => {
    const subject = subjectOf(ctx.services.vault, env, input.userId);
    const no = await users.eraseUser(tx, env, input.userId, { alias, mode, subject });
    if (no === undefined) throw notFound('User');
    await note(ctx, tx, { action: 'users.erase', user: no, after: { messages: mode } });
    await eraseId(tx, no);
    await happened(ctx, tx, 'userErased', {
      env,
      user: no,
      userId: input.userId,
      replacement: alias,
      messages: mode,
    });
    // This is the only event that must name the erased id. The id is sealed, and is removed with the delivery log.
    await tell(ctx.services.log, tx, env, 'user.deleted', {
      data: { messages: mode },
      sealed: ctx.services.vault.seal(input.userId, erasedContext(env)),
    });
    tx.afterCommit(() => ctx.services.signals.userOut(env, no, 4001));
    return { no, id: alias };
  });
  const rest = async (db: Db): Promise<void> => {
    const inside = { db, services: ctx.services };
    await outlastChanges(inside, env, user.no);
    await db.tx((tx) => eraseId(tx, user.no));
    await finish(inside, env, user, mode);
  };
  if (ctx.afterwards) ctx.afterwards(rest);
  else await rest(ctx.db);
};

type ErasureContext = Pick<Context, 'db' | 'services'>;

async function finish(
  ctx: ErasureContext,
  env: number,
  user: Person,
  mode: users.ErasureMode,
): Promise<void> {
  await forget(ctx, env, user.no);
  if (mode === 'delete')
    for (const conv of await conversationsOf(ctx.db, env, user.no)) {
      let looked = 0;
      for (let after: number | null = 0; after !== null;) {
        looked = after;
        const { seqs, next } = await messagesBy(ctx.db, env, conv, user.no, after, batchSize);
        if (seqs.length > 0) await locked(ctx, env, conv, (tx, held) => eraseMessages(ctx, tx, held, seqs));
        after = next;
      }
      await locked(ctx, env, conv, (tx, held) => leave(ctx, tx, held, user, looked));
      await takeBack(ctx, env, conv, user.no);
    }
  await users.endErasure(ctx.db, env, user.no);
}

/**
 * Waits for changes of the user's conversations that are under way: they may still write the id. Those that begin from
 * now on read the replacement. A conversation that stays locked holds up no erasure.
 */
async function outlastChanges(ctx: ErasureContext, env: number, user: number): Promise<void> {
  const convs = await conversationsOf(ctx.db, env, user);
  for (let i = 0; i < convs.length; i += convsAtOnce) {
    const some = convs.slice(i, i + convsAtOnce);
    const free = new Set(await unlockedConversations(ctx.db, env, some));
    for (const conv of some.filter((no) => !free.has(no)))
      await locked(ctx, env, conv, () => Promise.resolve()).catch((error: unknown) => {
        if (!isBusy(error)) throw error;
      });
  }
}

/** What was the user's alone goes: its notification levels, and its list of mentions. */
async function forget(ctx: ErasureContext, env: number, user: number): Promise<void> {
  for (const conv of await convsWithLevel(ctx.db, env, user))
    await locked(ctx, env, conv, (tx) => forgetLevel(tx, env, conv, user));
  for (let gone = mentionBatch; gone === mentionBatch;)
    gone = await insisting(() => eraseMentions(ctx.db, env, user, mentionBatch));
}

/** Takes the user's reactions back, also those of a conversation that it left. */
async function takeBack(ctx: ErasureContext, env: number, conv: number, user: number): Promise<void> {
  for (let messages = reactionBatch; messages === reactionBatch;) {
    const back = await coldRecords(ctx, env, conv, user);
    messages = await insisting(() =>
      ctx.db.tx(async (tx) => {
        await thawMessages(tx, env, conv, back);
        return eraseReactions(tx, env, conv, user, reactionBatch);
      }),
    );
    if (messages > 0) ctx.services.reactions.changed();
  }
}

/**
 * What the next batch needs back from the customer's database: events refer to rows of our store, and what changes there is
 * written again. A database that is away holds up no erasure: the reactions go, and the rest follows when it is back (tell.ts).
 */
async function coldRecords(
  ctx: ErasureContext,
  env: number,
  conv: number,
  user: number,
): Promise<MessageRecord[]> {
  const cold = await coldOfErased(ctx.db, env, conv, user, reactionBatch);
  if (!cold) return [];
  for (let tries = 1; ; tries++) {
    try {
      const place = { no: env, id: cold.environmentId };
      const found = await ctx.services.storage.cold.at(place, cold.conversationId, cold.seqs);
      return [...found.values()];
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code !== 'rate_limited' || tries === lockTries) return [];
      await delay(error.retryAfterMs ?? 0);
    }
  }
}

/**
 * How often is tried what others have locked, waiting a second or more each time; after that `resumeErasures` finishes
 * the rest.
 */
const lockTries = 10;
const isBusy = (error: unknown): boolean => error instanceof ApiError && error.code === 'service_unavailable';

async function insisting<T>(run: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await run();
    } catch (error) {
      if (!isBusy(error) || tries === lockTries) throw error;
    }
  }
}

/** Runs in one transaction with the conversation locked; does nothing if the conversation no longer exists. */
const locked = (
  ctx: ErasureContext,
  env: number,
  convNo: number,
  run: (tx: Tx, conv: LockedConversation) => Promise<void>,
): Promise<void> =>
  insisting(() =>
    ctx.db.tx(async (tx) => {
      const conv = await lockConversationByNo(tx, env, convNo);
      if (conv) await run(tx, conv);
    }),
  );

/**
 * Hard-deletes messages of a locked conversation. They may have been found before the lock was taken, so some may no
 * longer exist.
 */
async function eraseMessages(
  ctx: ErasureContext,
  tx: Tx,
  conv: LockedConversation,
  found: number[],
): Promise<void> {
  const { env } = conv;
  const messages = await messagesAt(
    tx,
    found.map((seq) => ({ env, conv: conv.no, seq })),
  );
  const rows = messages.filter((m) => !m.hard);
  // Messages that only the customer's database holds are emptied there. Here they count as deleted from now on; they
  // get no event, because no row is left that an event could refer to.
  const here = new Set(messages.map((m) => m.seq));
  const seqs = [...rows.map((m) => m.seq), ...found.filter((seq) => !here.has(seq))];
  await emptyMessages(ctx, tx, conv, { seqs, ids: rows.map((m) => m.id), hard: true });
  if (rows.length > 0)
    await record(
      ctx.services.log,
      tx,
      conv,
      rows.map((m) => ({
        type: 'message.deleted',
        actor: null,
        message: viewTombstone({ ...m, deletedAt: m.deletedAt ?? conv.lockedAt }),
        data: { hard: true },
      })),
    );
}

/**
 * Removes the user from a group. A send that was running when the user was erased may have committed after the search
 * for messages ended, at seq `looked`; those messages are erased here, and under this lock no more can follow.
 */
async function leave(
  ctx: ErasureContext,
  tx: Tx,
  conv: LockedConversation,
  user: Person,
  looked: number,
): Promise<void> {
  for (let after: number | null = looked; after !== null;) {
    const { seqs, next } = await messagesBy(tx, conv.env, conv.no, user.no, after, batchSize);
    if (seqs.length > 0) await eraseMessages(ctx, tx, conv, seqs);
    after = next;
  }
  if (conv.type === 'group' && (await findMembers(tx, conv.env, conv.no, [user.no])).length > 0)
    await removeFromGroup(ctx, tx, conv, { user, actor: null, reason: 'removed' });
}

/** Finishes erasures that a crash cut off. */
export async function resumeErasures(ctx: ErasureContext): Promise<number> {
  const rows = await users.unfinishedErasures(ctx.db);
  for (const row of rows) await finish(ctx, row.env, { no: row.no, id: row.id }, row.erasing);
  return rows.length;
}
