import { ApiError } from '@parley/protocol';
import type { Caller, Environment, Person, TenantCaller } from './context.ts';

/** The kinds of callers there are, by what each may do. */

const nobody = { user: null, keyId: null, person: null, operator: null };

export const serverCaller = (env: Environment, keyId: string): TenantCaller => ({
  ...nobody,
  kind: 'server',
  env,
  keyId,
});
export const clientCaller = (env: Environment, user: { no: number; id: string }): TenantCaller => ({
  ...nobody,
  kind: 'client',
  env,
  user,
});
export const dashboardCaller = (person: Person): Caller => ({ ...nobody, kind: 'dashboard', person });
/** A person who is not signed in yet. */
export const anyone: Caller = { ...nobody, kind: 'anyone' };
/** The operator at the command line, who has access to the database anyway. */
export const operatorCaller = (name: string): Caller => ({ ...nobody, kind: 'operator', operator: name });

/** The user that the caller acts as; others are refused. */
export function actingUser({ caller }: { caller: Caller }): { no: number; id: string } {
  if (!caller.user) throw new ApiError('forbidden');
  return caller.user;
}
