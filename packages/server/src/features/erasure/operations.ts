import { ApiError } from '@parley/protocol';
import type { Input } from '@parley/protocol';
import type { Person } from '../../log/catalogue.ts';
import { lockConversationByNo } from '../../log/lock.ts';
import type { LockedConversation } from '../../log/lock.ts';
import { record, tell } from '../../log/record.ts';
import type { Db, Queryable, Tx } from '../../platform/postgres/db.ts';
import { record as note } from '../audit/operations.ts';
import type { Context } from '../context.ts';
import { happened } from '../happenings.ts';
import { removeFromGroup } from '../members/operations.ts';
import { messagesAt, messagesBy, viewTombstone } from '../message-reader.ts';
import { emptyMessages } from '../messages/operations.ts';
import { subjectOf } from '../users/operations.ts';
import { erasedContext } from '../webhooks/signature.ts';

/**
 * Erasure (GDPR). The first transaction cuts the person off: the row is renamed to `deleted:<random>`, which renames
 * it everywhere at once, because everything refers to users by number. With `messages=delete`, the messages then go
 * batch by batch, each batch in a transaction of its own; a crash half-way is finished by `resumeErasures`, which finds rows
 * still marked as `erasing`.
 */

/** Messages that are erased in one transaction with the conversation locked: senders there wait for no more than these. */
const batchSize = 50;

export async function erase(ctx: Context, input: Input<'users.erase'>): Promise<void> {
  const env = ctx.env.no;
  // An erasure cannot be undone, so in a production environment the dashboard must send the environment's name, typed
  // by a person.
  if (ctx.caller.kind === 'dashboard' && ctx.env.kind === 'production' && input.confirm !== ctx.env.name)
    throw new ApiError('invalid_request', {
      param: 'confirm',
      message: 'confirm must be the name of the environment: it is a production environment.',
    });
  const mode = input.messages ?? 'anonymize';
  const alias = `deleted:${ctx.services.ids.secret(20)}`;
  const eraseId = async (tx: Tx, user: number): Promise<void> =>
    happened(ctx, tx, 'userIdErased', {
      env,
      userId: input.userId,
      convs: await conversationsOf(tx, env, user),
    });
  const user = await ctx.db.tx(async (tx) => {
    const [row] = await tx.query<{ no: number; tokens_from: string }>(
      `UPDATE users SET id = $3, name = NULL, image_url = NULL, metadata = NULL, erased_at = now(), erasing = $4,
         deactivated_at = coalesce(deactivated_at, now()), tokens_from = token_cutoff(env, tokens_from), last_seen_at = NULL
       WHERE env = $1 AND id = $2 AND erased_at IS NULL RETURNING no, tokens_from`,
      [env, input.userId, alias, mode],
    );
    if (!row) throw new ApiError('not_found', { message: 'There is no such user.' });
    await tx.query(
      `INSERT INTO erased_ids (env, subject, tokens_from) VALUES ($1, $2, $3)
       ON CONFLICT (env, subject) DO UPDATE SET tokens_from = greatest(erased_ids.tokens_from, excluded.tokens_from)`,
      [env, subjectOf(ctx.services.vault, env, input.userId), row.tokens_from],
    );
    await note(ctx, tx, {
      where: { env },
      action: 'users.erase',
      user: row.no,
      before: null,
      after: { messages: mode },
    });
    await eraseId(tx, row.no);
    await happened(ctx, tx, 'userErased', {
      env,
      user: row.no,
      userId: input.userId,
      replacement: alias,
      messages: mode,
    });
    // This is the only event that must name the erased id. The id is sealed, and is removed with the delivery log.
    await tell(ctx.services.log, tx, env, 'user.deleted', {
      data: { messages: mode },
      sealed: ctx.services.vault.seal(input.userId, erasedContext(env)),
    });
    tx.afterCommit(() => ctx.services.signals.userOut(env, row.no, 4001));
    return { no: row.no, id: alias };
  });
  const rest = async (db: Db): Promise<void> => {
    await db.tx((tx) => eraseId(tx, user.no));
    await finish({ db, services: ctx.services }, env, user, mode);
  };
  if (ctx.afterwards) ctx.afterwards(rest);
  else await rest(ctx.db);
}

type Mode = 'anonymize' | 'delete';

type ErasureContext = Pick<Context, 'db' | 'services'>;

async function finish(ctx: ErasureContext, env: number, user: Person, mode: Mode): Promise<void> {
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
    }
  await ctx.db.query('UPDATE users SET erasing = NULL WHERE env = $1 AND no = $2', [env, user.no]);
}

/** The conversations that the user is or was in: the user can have written nowhere else. */
const conversationsOf = async (db: Queryable, env: number, user: number): Promise<number[]> =>
  (
    await db.query<{ conv: number }>(
      `SELECT conv FROM members WHERE env + 0 = $1 AND usr = $2
       UNION SELECT conv FROM departures WHERE env + 0 = $1 AND usr = $2 ORDER BY conv`,
      [env, user],
    )
  ).map((r) => r.conv);

/**
 * How often a conversation that is locked by others is tried, waiting a second each time; after that `resumeErasures`
 * finishes the rest.
 */
const lockTries = 10;

/** Runs in one transaction with the conversation locked; does nothing if the conversation no longer exists. */
async function locked(
  ctx: ErasureContext,
  env: number,
  convNo: number,
  run: (tx: Tx, conv: LockedConversation) => Promise<void>,
): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await ctx.db.tx(async (tx) => {
        const conv = await lockConversationByNo(tx, env, convNo);
        if (conv) await run(tx, conv);
      });
    } catch (error) {
      const busy = error instanceof ApiError && error.code === 'service_unavailable';
      if (!busy || tries === lockTries) throw error;
    }
  }
}

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
  if (conv.type === 'group' && (await isMember(tx, conv.env, conv.no, user.no)))
    await removeFromGroup(ctx, tx, conv, { user, actor: null, reason: 'removed' });
}

const isMember = async (tx: Tx, env: number, conv: number, user: number): Promise<boolean> =>
  (await tx.query('SELECT 1 FROM members WHERE env = $1 AND conv = $2 AND usr = $3', [env, conv, user]))
    .length > 0;

/** Finishes erasures that a crash cut off. */
export async function resumeErasures(ctx: ErasureContext): Promise<number> {
  const rows = await ctx.db.query<{ env: number; no: number; id: string; erasing: Mode }>(
    `SELECT env, no, id, erasing FROM users WHERE erasing IS NOT NULL AND erased_at < now() - interval '1 minute' ORDER BY env, no LIMIT 100`,
  );
  for (const row of rows) await finish(ctx, row.env, { no: row.no, id: row.id }, row.erasing);
  return rows.length;
}
