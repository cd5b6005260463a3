import { ApiError } from '@parley/protocol';
import { invalid } from '../../platform/api-errors.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { Caller, Environment, ManageContext } from '../context.ts';
import { findEnvironment } from './sql/environments.ts';
import { firstOrganizations, organizationNumber } from './sql/organizations.ts';

/**
 * What a caller of the control plane may manage. The operator, who has access to the database anyway, may manage
 * everything. For people, the binding has looked up the organization that the request names and their role there;
 * anything outside of it does not exist for them.
 */

export async function requireOrganization(ctx: ManageContext, db: Queryable, id: string): Promise<number> {
  const no = await organizationNumber(db, id);
  if (no === undefined || (ctx.caller.operator === null && ctx.organization?.no !== no))
    throw new ApiError('not_found', { message: `There is no organization ${id}.` });
  return no;
}

/** @param lock locks the environment until the transaction ends, for a change. */
export async function requireEnvironment(
  ctx: ManageContext,
  db: Queryable,
  id: string,
  lock = false,
): Promise<Environment> {
  const env = await findEnvironment(db, id, lock);
  if (!env || (ctx.caller.operator === null && ctx.env?.no !== env.no))
    throw new ApiError('not_found', { message: `There is no environment ${id}.` });
  return env;
}

/**
 * What cannot be undone in a production environment, and stopping it, needs its name in `confirm`, typed by a person. The
 * operator has typed its id already, and a server acts for itself.
 */
export function requireConfirmation(caller: Caller, env: Environment, confirm: string | undefined): void {
  if (env.kind === 'production' && caller.person && confirm !== env.name)
    throw invalid('confirm', 'confirm must be the name of the environment: it is a production environment.');
}

/** The only organization. If there are several, the caller has to name one. */
export async function onlyOrganization(db: Queryable): Promise<string> {
  const [first, second] = await firstOrganizations(db);
  if (!first) throw new ApiError('not_found', { message: 'The store is empty: run npm start once first.' });
  if (second) throw invalid('organizationId', 'There are several organizations: name one.');
  return first;
}
