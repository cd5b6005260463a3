import { ApiError } from '@parley/protocol';
import type { Tx } from '../../../platform/postgres/db.ts';
import { record } from '../../audit/operations.ts';
import type { ControlContext, Operation } from '../../context.ts';
import { findByEmail, lockAccount } from '../sql/accounts.ts';
import type { Account } from '../sql/accounts.ts';
import { resetLink } from '../mail-texts.ts';
import { listMemberships } from '../sql/organizations.ts';
import { removePasskeys } from '../sql/passkeys.ts';
import { beginReset } from '../sql/resets.ts';
import { removeRecoveryCodes, removeTotp } from '../sql/second-factor.ts';
import { endOtherSessions } from '../sql/sessions.ts';

/** What the operator does for people who are locked out of their account. */

type OperatorAction = 'accounts.reset' | 'accounts.endSessions' | 'accounts.removeSecondFactor';

function change<T>(
  ctx: ControlContext,
  email: string,
  action: OperatorAction,
  run: (tx: Tx, account: Account) => Promise<T>,
): Promise<T> {
  return ctx.db.tx(async (tx) => {
    const account = await findByEmail(tx, email);
    if (!account) throw new ApiError('not_found', { message: `There is no account ${email}.` });
    await lockAccount(tx, account.no);
    for (const { no } of await listMemberships(tx, account.no))
      await record(ctx, tx, { where: { org: no }, action, target: account.id });
    return run(tx, account);
  });
}

export const reset: Operation<ControlContext, 'accounts.reset'> = (ctx, { email }) =>
  change(ctx, email, 'accounts.reset', async (tx, account) => {
    const { token, expiresAt } = await beginReset(tx, ctx.services, account.no);
    return { link: resetLink(ctx.services.linkOrigin(), token), expiresAt };
  });

export const endSessions: Operation<ControlContext, 'accounts.endSessions'> = (ctx, { email }) =>
  change(ctx, email, 'accounts.endSessions', async (tx, account) => {
    await endOtherSessions(tx, account.no, null);
  });

export const removeSecondFactor: Operation<ControlContext, 'accounts.removeSecondFactor'> = (
  ctx,
  { email },
) =>
  change(ctx, email, 'accounts.removeSecondFactor', async (tx, account) => {
    await removeTotp(tx, account.no);
    await removePasskeys(tx, account.no);
    await removeRecoveryCodes(tx, account.no);
    await endOtherSessions(tx, account.no, null);
  });
