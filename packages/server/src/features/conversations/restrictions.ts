import { ApiError } from '@parley/protocol';
import type { Input, Output, Restriction } from '@parley/protocol';
import { invalid } from '../../platform/api-errors.ts';
import type { Person } from '../../log/catalogue.ts';
import { tell } from '../../log/record.ts';
import type { Tx } from '../../platform/postgres/db.ts';
import { record as noteChange } from '../audit/operations.ts';
import type { Context } from '../context.ts';
import { happened } from '../happenings.ts';
import { isTimedPlace, listPage } from '../pages.ts';
import { moment } from '../time.ts';
import { existingUser } from '../users/operations.ts';
import { personalChange } from '../users/personal.ts';
import { lockUsers, setSilenced } from '../users/sql.ts';
import { lockForChange, readable, requireGroup, requireModerator } from './access.ts';
import type { LockedAccess } from './access.ts';
import { removeFromGroup } from './members.ts';
import { findMembers } from './sql/members.ts';
import * as sql from './sql/restrictions.ts';

/** restrictions.md: bans and silences. */

type Limits = Pick<Input<'restrictions.set'>, 'until' | 'reason'>;

const untilOf = ({ until }: Limits): string | null => (until == null ? null : moment('until', until));
/** In the rows that sends read, a silence without an end lasts for ever. */
const silence = (until: string | null): string => until ?? 'infinity';

export const set = (ctx: Context, input: Input<'restrictions.set'>): Promise<Output<'restrictions.set'>> =>
  change(ctx, input, async (tx, { access, user, role }) => {
    const { conv, actor } = access;
    const { kind } = input;
    if (kind === 'silence' && role === null)
      throw new ApiError('not_found', { message: 'The user is not a member of the conversation.' });
    const [until, reason] = [untilOf(input), input.reason ?? null];
    const place = { env: conv.env, conv: conv.no, user: user.no };
    const at = await sql.setRestriction(tx, { ...place, kind, until, reason, by: actor?.no ?? null });
    if (kind === 'silence') {
      await sql.silenceMember(tx, conv.env, conv.no, user.no, silence(until));
      await happened(ctx, tx, 'userSilenced', place);
    } else if (role !== null)
      await removeFromGroup(ctx, tx, conv, { user, actor, reason: 'removed', banned: true });
    return { userId: user.id, kind, until, reason, by: actor?.id ?? null, at };
  });

export async function remove(ctx: Context, input: Input<'restrictions.remove'>): Promise<void> {
  await change(ctx, input, async (tx, { access: { conv }, user }) => {
    if (!(await sql.liftRestriction(tx, conv.env, conv.no, user.no))) return undefined;
    await sql.silenceMember(tx, conv.env, conv.no, user.no, null);
    return null;
  });
}

interface Target {
  access: LockedAccess;
  user: Person;
  /** Null if the user is not a member. */
  role: 'owner' | 'moderator' | 'member' | null;
}

/** Runs with the conversation locked, if the caller may restrict the user; tells the user and webhooks of it. */
async function change<R extends Restriction | null | undefined>(
  ctx: Context,
  { conversationId, userId }: { conversationId: string; userId: string },
  /** Undefined: nothing changed. */
  run: (tx: Tx, target: Target) => Promise<R>,
): Promise<R> {
  return ctx.db.tx(async (tx) => {
    // Who may restrict nobody locks nobody, and does not learn who exists.
    const { role } = await readable(ctx, tx, conversationId);
    requireModerator({ role, actor: ctx.caller.user }, 'member');
    const { no, id } = await existingUser(ctx, tx, userId);
    // Before the conversation, as everywhere.
    await lockUsers(tx, ctx.env.no, [no]);
    const access = await lockForChange(ctx, tx, conversationId);
    requireGroup(access.conv, 'Restrictions are for groups.');
    if (access.actor?.no === no) throw invalid('userId', 'Nobody can restrict themselves.');
    const [member] = await findMembers(tx, ctx.env.no, access.conv.no, [no]);
    requireModerator(access, member?.role ?? 'member');
    const done = await run(tx, { access, user: { no, id }, role: member?.role ?? null });
    if (done === undefined) return done;
    // What somebody writes into a reason must not reach people who are not in the group, and may have blocked the writer.
    const kept = member === undefined && access.actor ? { reason: null } : {};
    const told = done ? { ...done, ...kept } : lifted(id);
    await personalChange(ctx, tx, no, 'restriction', { conversationId, ...told });
    await tellWebhooks(ctx, tx, { no, id }, access.actor, conversationId, done);
    return done;
  });
}

const lifted = (userId: string) => ({ userId, kind: null, until: null });

const tellWebhooks = (
  { env, services }: Context,
  tx: Tx,
  user: Person,
  by: Person | null,
  conversationId: string | null,
  done: Restriction | null,
): Promise<void> =>
  tell(services.log, tx, env.no, 'member.restricted', {
    users: [user.no, ...(by ? [by.no] : [])],
    data: { conversationId, kind: done?.kind ?? null, until: done?.until ?? null },
  });

export async function list(
  ctx: Context,
  input: Input<'restrictions.list'>,
): Promise<Output<'restrictions.list'>> {
  const conv = await readable(ctx, ctx.db, input.conversationId);
  requireModerator({ role: conv.role, actor: ctx.caller.user }, 'member');
  return listPage(
    input,
    isTimedPlace,
    (after, most) => sql.listRestrictions(ctx.db, ctx.env.no, { conv: conv.no }, after, most),
    ({ at, no }) => [at, no],
    ({ no: _, conversationId: __, ...view }) => view,
  );
}

/** restrictions#user: all that are in force. */
export async function listOfUser(
  ctx: Context,
  input: Input<'users.listRestrictions'>,
): Promise<Output<'users.listRestrictions'>> {
  const user = await existingUser(ctx, ctx.db, input.userId);
  return listPage(
    input,
    isTimedPlace,
    (after, most) => sql.listRestrictions(ctx.db, ctx.env.no, { user: user.no }, after, most),
    ({ at, no }) => [at, no],
    ({ no: _, ...view }) => view,
  );
}

export const silenceUser = (ctx: Context, input: Input<'users.silence'>): Promise<Restriction> =>
  ctx.db.tx(async (tx) => {
    const { no, id } = await existingUser(ctx, tx, input.userId);
    const [until, reason] = [untilOf(input), input.reason ?? null];
    await setSilenced(tx, ctx.env.no, no, silence(until));
    const row = { env: ctx.env.no, conv: 0, user: no, kind: 'silence' as const, until, reason, by: null };
    const at = await sql.setRestriction(tx, row);
    const done: Restriction = { userId: id, kind: 'silence', until, reason, by: null, at };
    await happened(ctx, tx, 'userSilenced', { env: ctx.env.no, conv: null, user: no });
    await told(ctx, tx, 'users.silence', { no, id }, done);
    return done;
  });

export const unsilenceUser = (ctx: Context, input: Input<'users.unsilence'>): Promise<void> =>
  ctx.db.tx(async (tx) => {
    const { no, id } = await existingUser(ctx, tx, input.userId);
    await setSilenced(tx, ctx.env.no, no, null);
    if (await sql.liftRestriction(tx, ctx.env.no, 0, no))
      await told(ctx, tx, 'users.unsilence', { no, id }, null);
  });

/** The user, webhooks, and the audit log if people did it. */
async function told(
  ctx: Context,
  tx: Tx,
  action: 'users.silence' | 'users.unsilence',
  user: Person,
  done: Restriction | null,
): Promise<void> {
  await personalChange(ctx, tx, user.no, 'restriction', {
    conversationId: null,
    ...(done ?? lifted(user.id)),
  });
  await tellWebhooks(ctx, tx, user, null, null, done);
  await noteChange(ctx, tx, {
    action,
    user: user.no,
    after: done && { until: done.until, reason: done.reason },
  });
}
