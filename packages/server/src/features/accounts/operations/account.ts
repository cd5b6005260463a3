import { ApiError } from '@parley/protocol';
import type { Account as AccountRecord, AccountSession, Input, Output } from '@parley/protocol';
import { notFound } from '../../../platform/api-errors.ts';
import type { Queryable, Tx } from '../../../platform/postgres/db.ts';
import type { AccountContext, Operation, Reply } from '../../context.ts';
import { getAccount, hasSecondFactor, lockAccount, renameAccount, setPassword } from '../sql/accounts.ts';
import type { Account } from '../sql/accounts.ts';
import { recordOwn, signedIn } from '../context.ts';
import { passwordMail } from '../mail-texts.ts';
import * as passkeys from '../passkeys.ts';
import { checkNewPassword, ownWords } from '../password-rules.ts';
import * as factors from '../second-factor.ts';
import { dropReset } from '../sql/resets.ts';
import { endOtherSessions, endSession, hasSession, listSessions } from '../sql/sessions.ts';
import { confirmPassword } from '../sign-in.ts';
import { renewSession } from './session.ts';
import * as storedPasskeys from '../sql/passkeys.ts';
import * as storedFactors from '../sql/second-factor.ts';

const load = (ctx: AccountContext): Promise<Account> => getAccount(ctx.db, signedIn(ctx).account.no);

async function view(db: Queryable, no: number): Promise<AccountRecord> {
  const account = await getAccount(db, no);
  const { id, email, name, createdAt } = account;
  return {
    id,
    email,
    name,
    createdAt,
    twoFactor: hasSecondFactor(account),
    totp: account.totpSince !== null,
    passkeys: account.passkeys,
    recoveryCodes: await storedFactors.countRecoveryCodes(db, no),
  };
}

export const get = (ctx: AccountContext): Promise<AccountRecord> => view(ctx.db, signedIn(ctx).account.no);

export const update: Operation<AccountContext, 'account.update'> = async (ctx, { name }) => {
  const account = await load(ctx);
  return ctx.db.tx(async (tx) => {
    if (name !== account.name) {
      await renameAccount(tx, account.no, name);
      await recordOwn(ctx, tx, account, 'account.update', {
        before: { name: account.name },
        after: { name },
      });
    }
    return view(tx, account.no);
  });
};

export async function changePassword(
  ctx: AccountContext,
  input: Input<'account.changePassword'>,
): Promise<Reply<AccountSession>> {
  const { session } = signedIn(ctx);
  const { accounts } = ctx.services;
  const account = await load(ctx);
  checkNewPassword(input.newPassword, ownWords(account.email, account.name), 'newPassword');
  const hash = await accounts.passwords.hash(input.newPassword);
  return confirmPassword(ctx.db, accounts, account, session.id, input, async (tx) => {
    await setPassword(tx, account.no, hash);
    await endOtherSessions(tx, account.no, session.id);
    await dropReset(tx, account.no);
    await recordOwn(ctx, tx, account, 'account.changePassword');
    await accounts.mailQueue.send(tx, account.no, passwordMail(account.email));
    return renewSession(ctx, tx, account);
  });
}

/**
 * Changes the second factors of the caller, one change at a time, because what the account has decides which recovery codes it
 * gets and keeps. A session that ended meanwhile changes nothing.
 */
function changeFactors<T>(ctx: AccountContext, run: (tx: Tx, account: Account) => Promise<T>): Promise<T> {
  const { account, session } = signedIn(ctx);
  return ctx.db.tx(async (tx) => {
    await lockAccount(tx, account.no);
    if (!(await hasSession(tx, account.no, session.id))) throw new ApiError('token_invalid');
    return run(tx, await getAccount(tx, account.no));
  });
}

export const beginTotp = async (ctx: AccountContext): Promise<Output<'account.beginTotp'>> =>
  factors.beginTotp(ctx.db, ctx.services.accounts, await load(ctx));

export const confirmTotp: Operation<AccountContext, 'account.confirmTotp'> = (ctx, { code }) =>
  changeFactors(ctx, async (tx, account) => {
    await factors.confirmTotp(tx, ctx.services.accounts, account, code);
    await recordOwn(ctx, tx, account, 'account.confirmTotp');
    return { recoveryCodes: await firstCodes(ctx, tx, account) };
  });

/**
 * Makes recovery codes with the account's first second factor. A second one keeps the codes that exist, so null is
 * returned.
 */
const firstCodes = (ctx: AccountContext, tx: Tx, before: Account): Promise<string[] | null> =>
  hasSecondFactor(before)
    ? Promise.resolve(null)
    : factors.renewRecoveryCodes(tx, ctx.services.accounts, before.no);

/** Removes the recovery codes of an account that no longer has a second factor. */
async function dropUselessCodes(tx: Tx, account: number): Promise<void> {
  if (!hasSecondFactor(await getAccount(tx, account))) await storedFactors.removeRecoveryCodes(tx, account);
}

export const removeTotp = (ctx: AccountContext): Promise<void> =>
  changeFactors(ctx, async (tx, account) => {
    if (!(await storedFactors.removeTotp(tx, account.no)))
      throw new ApiError('not_found', { message: 'One-time codes are not on.' });
    await dropUselessCodes(tx, account.no);
    await recordOwn(ctx, tx, account, 'account.removeTotp');
  });

export const renewRecoveryCodes = (ctx: AccountContext): Promise<Output<'account.renewRecoveryCodes'>> =>
  changeFactors(ctx, async (tx, account) => {
    if (!hasSecondFactor(account))
      throw new ApiError('invalid_request', { message: 'There is no second factor to recover.' });
    await recordOwn(ctx, tx, account, 'account.renewRecoveryCodes');
    return { recoveryCodes: await factors.renewRecoveryCodes(tx, ctx.services.accounts, account.no) };
  });

export const listPasskeys = async (ctx: AccountContext): Promise<Output<'account.listPasskeys'>> => ({
  data: await storedPasskeys.listPasskeys(ctx.db, signedIn(ctx).account.no),
});

export const passkeyOptions = async (ctx: AccountContext): Promise<object> =>
  passkeys.registrationOptions(ctx.db, ctx.services.accounts, await load(ctx), passkeys.relyingParty(ctx));

export const addPasskey: Operation<AccountContext, 'account.addPasskey'> = (ctx, input) =>
  changeFactors(ctx, async (tx, account) => {
    const passkey = await passkeys.addPasskey(
      tx,
      ctx.services.accounts,
      account,
      passkeys.relyingParty(ctx),
      input,
    );
    await recordOwn(ctx, tx, account, 'account.addPasskey', {
      after: { id: passkey.id, name: passkey.name },
    });
    return { passkey, recoveryCodes: await firstCodes(ctx, tx, account) };
  });

export const removePasskey: Operation<AccountContext, 'account.removePasskey'> = (ctx, { passkeyId }) =>
  changeFactors(ctx, async (tx, account) => {
    if (!(await storedPasskeys.removePasskey(tx, account.no, passkeyId))) throw notFound('Passkey');
    await dropUselessCodes(tx, account.no);
    await recordOwn(ctx, tx, account, 'account.removePasskey', { before: { id: passkeyId } });
  });

export async function listOwnSessions(ctx: AccountContext): Promise<Output<'account.listSessions'>> {
  const { account, session } = signedIn(ctx);
  const rows = await listSessions(ctx.db, ctx.services.clock, account.no);
  return { data: rows.map((row) => ({ ...row, current: row.id === session.id })) };
}

export const endOwnSession: Operation<AccountContext, 'account.endSession'> = async (ctx, { sessionId }) => {
  const { account } = signedIn(ctx);
  await ctx.db.tx(async (tx) => {
    if (!(await endSession(tx, account.no, sessionId))) throw notFound('Session');
    await recordOwn(ctx, tx, account, 'account.endSession', { before: { id: sessionId } });
  });
};

export async function endOthers(ctx: AccountContext): Promise<void> {
  const { account, session } = signedIn(ctx);
  await ctx.db.tx(async (tx) => {
    const ended = await endOtherSessions(tx, account.no, session.id);
    if (ended > 0)
      await recordOwn(ctx, tx, account, 'account.endOtherSessions', { before: { sessions: ended } });
  });
}
