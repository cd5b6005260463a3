import { ApiError } from '@parley/protocol';
import type { AccountSession, Input } from '@parley/protocol';
import type { Queryable, Tx } from '../../../platform/postgres/db.ts';
import type { AccountContext, Reply } from '../../context.ts';
import { environmentRecord, environmentsOfAccount } from '../../tenancy/sql/environments.ts';
import { getAccount, hasSecondFactor } from '../sql/accounts.ts';
import type { Account } from '../sql/accounts.ts';
import { recordOwn, signedIn, withCookie } from '../context.ts';
import { listMemberships } from '../sql/organizations.ts';
import { relyingParty, signInOptions, usePasskey } from '../passkeys.ts';
import { createSession, endByToken, endSession, renewToken } from '../sql/sessions.ts';
import { confirmPassword, signIn } from '../sign-in.ts';
import { countWrong, ofAddress } from '../throttle.ts';

/** POST, GET and DELETE /v1/session (dashboard#session). */

export async function viewSession(
  db: Queryable,
  account: Account,
  signedInAt: string,
): Promise<AccountSession> {
  const organizations = await listMemberships(db, account.no);
  const environments = await environmentsOfAccount(db, account.no);
  const { id, email, name } = account;
  return {
    account: { id, email, name, twoFactor: hasSecondFactor(account) },
    signedInAt,
    organizations: organizations.map((org) => ({
      id: org.id,
      name: org.name,
      role: org.role,
      environments: environments.filter((env) => env.org === org.no).map(({ env }) => environmentRecord(env)),
    })),
  };
}

/** Ends the session that the browser had before, because somebody else may have planted its cookie there. */
export async function beginSession(
  ctx: AccountContext,
  tx: Tx,
  account: Account,
): Promise<Reply<AccountSession>> {
  if (ctx.http.cookie !== null) await endByToken(tx, ctx.http.cookie);
  const { token, session } = await createSession(tx, ctx.services, account.no, ctx.http);
  return withCookie(ctx, token, await viewSession(tx, account, session.signedInAt));
}

/** Gives the caller's session a new token after the password was confirmed. */
export async function renewSession(
  ctx: AccountContext,
  tx: Tx,
  account: Account,
): Promise<Reply<AccountSession>> {
  const renewed = await renewToken(tx, ctx.services, signedIn(ctx).session.id);
  if (!renewed) throw new ApiError('token_invalid');
  return withCookie(ctx, renewed.token, await viewSession(tx, account, renewed.session.signedInAt));
}

export const create = (ctx: AccountContext, input: Input<'session.create'>): Promise<Reply<AccountSession>> =>
  signIn(ctx.db, ctx.services.accounts, input, ctx.http, async (tx, account) => {
    await recordOwn(ctx, tx, account, 'session.create');
    return beginSession(ctx, tx, account);
  });

export const passkeyOptions = (ctx: AccountContext): Promise<object> =>
  signInOptions(ctx.services.accounts, relyingParty(ctx));

export const createWithPasskey = (
  ctx: AccountContext,
  { response }: Input<'session.createWithPasskey'>,
): Promise<Reply<AccountSession>> =>
  countWrong(ctx.services.accounts.limiter, [ofAddress('sign-in', ctx.http.address)], () =>
    ctx.db.tx(async (tx) => {
      const no = await usePasskey(tx, ctx.services.accounts, relyingParty(ctx), response);
      const account = await getAccount(tx, no);
      await recordOwn(ctx, tx, account, 'session.createWithPasskey');
      return beginSession(ctx, tx, account);
    }),
  );

export async function get(ctx: AccountContext): Promise<AccountSession> {
  const { account, session } = signedIn(ctx);
  return viewSession(ctx.db, await getAccount(ctx.db, account.no), session.signedInAt);
}

export async function reauth(
  ctx: AccountContext,
  input: Input<'session.reauth'>,
): Promise<Reply<AccountSession>> {
  const { account: caller, session } = signedIn(ctx);
  const account = await getAccount(ctx.db, caller.no);
  return confirmPassword(ctx.db, ctx.services.accounts, account, session.id, input, async (tx) => {
    await recordOwn(ctx, tx, account, 'session.reauth');
    return renewSession(ctx, tx, account);
  });
}

export async function remove(ctx: AccountContext): Promise<Reply<null>> {
  const { account, session } = signedIn(ctx);
  await ctx.db.tx(async (tx) => {
    await endSession(tx, account.no, session.id);
    await recordOwn(ctx, tx, account, 'session.delete');
  });
  return withCookie(ctx, null, null, 204);
}
