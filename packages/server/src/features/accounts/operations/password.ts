import type { Input } from '@parley/protocol';
import type { AccountContext, Operation, Reply } from '../../context.ts';
import { findByEmail, getAccount, setPassword } from '../sql/accounts.ts';
import { recordOwn, withCookie } from '../context.ts';
import { passwordMail, resetLink, resetMail } from '../mail-texts.ts';
import { checkNewPassword, ownWords } from '../password-rules.ts';
import { beginReset, openReset, useReset } from '../sql/resets.ts';
import { endOtherSessions } from '../sql/sessions.ts';
import { countUse, mailCount, ofAddress } from '../throttle.ts';

/** The account is looked up after the answer, so the answer does not tell whether the address has one. */
export const forgot: Operation<AccountContext, 'password.forgot'> = async (ctx, { email }) => {
  const { accounts } = ctx.services;
  const { limiter, mailQueue, vault } = accounts;
  await countUse(limiter, [ofAddress('forgot', ctx.http.address), mailCount(vault, 'reset', email)]);
  if (mailQueue.enabled) accounts.later(() => sendReset(ctx, email));
  return { mail: mailQueue.enabled };
};

async function sendReset(ctx: AccountContext, email: string): Promise<void> {
  const { accounts } = ctx.services;
  const account = await findByEmail(ctx.db, email);
  if (!account) return;
  await ctx.db.tx(async (tx) => {
    const { token } = await beginReset(tx, accounts, account.no);
    await recordOwn(ctx, tx, account, 'password.forgot');
    await accounts.mailQueue.send(
      tx,
      account.no,
      resetMail(account.email, resetLink(accounts.linkOrigin(), token)),
    );
  });
}

/** A reset does not remove the second factor: a person who can only read the mail still needs it to sign in. */
export async function reset(
  ctx: AccountContext,
  { token, password }: Input<'password.reset'>,
): Promise<Reply<null>> {
  const { accounts } = ctx.services;
  await countUse(accounts.limiter, [ofAddress('reset', ctx.http.address)]);
  const account = await getAccount(ctx.db, await openReset(ctx.db, accounts, token));
  checkNewPassword(password, ownWords(account.email, account.name));
  const hash = await accounts.passwords.hash(password);
  await ctx.db.tx(async (tx) => {
    await useReset(tx, token);
    await setPassword(tx, account.no, hash);
    await endOtherSessions(tx, account.no, null);
    await recordOwn(ctx, tx, account, 'password.reset');
    await accounts.mailQueue.send(tx, account.no, passwordMail(account.email));
  });
  return withCookie(ctx, null, null, 204);
}
