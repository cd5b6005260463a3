import { ApiError } from '@parley/protocol';
import type { OperationName } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import { record } from '../audit/operations.ts';
import { Reply } from '../context.ts';
import type { AccountContext, Person } from '../context.ts';
import { listMemberships } from './sql/organizations.ts';
import { sessionTimes } from './sql/sessions.ts';

export function signedIn({ caller }: AccountContext): Person {
  if (!caller.person) throw new ApiError('token_invalid');
  return caller.person;
}

export const sessionCookie = 'parley_session';

/** dashboard#session: HttpOnly, SameSite=Lax, Path=/, Secure where the request came over https. */
export function withCookie<T>(ctx: AccountContext, token: string | null, body: T, status = 200): Reply<T> {
  const age = token === null ? 0 : Math.floor(sessionTimes.totalMs / 1000);
  const cookie = `${sessionCookie}=${token ?? ''}; Path=/; Max-Age=${age}; HttpOnly; SameSite=Lax`;
  return new Reply(status, body, { 'Set-Cookie': ctx.http.secure ? `${cookie}; Secure` : cookie });
}

/** Records a change to the caller's own account in the audit log of each organization that the account belongs to. */
export async function recordOwn(
  ctx: AccountContext,
  tx: Queryable,
  account: { no: number; id: string; email: string },
  action: OperationName,
  change: { before?: object; after?: object } = {},
): Promise<void> {
  for (const { no } of await listMemberships(tx, account.no))
    await record(ctx, tx, {
      where: { org: no },
      actor: account.email,
      action,
      target: account.id,
      ...change,
    });
}
