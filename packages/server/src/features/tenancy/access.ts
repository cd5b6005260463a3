import { ApiError } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { ControlContext, Environment, Place } from '../context.ts';
import { findEnvironment } from './environments.ts';

/**
 * What a caller of the control plane may manage. The operator, who has access to the database anyway, may manage
 * everything. For people, the binding has looked up the organization that the request names and their role there;
 * anything outside of it does not exist for them.
 */

/** The operator's context has no place, because everything is within reach. */
export type ManageContext = ControlContext & Place;

export async function requireOrganization(ctx: ManageContext, db: Queryable, id: string): Promise<number> {
  const [row] = await db.query<{ no: number }>(
    'SELECT no FROM organizations WHERE id = $1 AND deleted_at IS NULL',
    [id],
  );
  if (!row || (ctx.caller.kind !== 'operator' && ctx.organization?.no !== row.no))
    throw new ApiError('not_found', { message: `There is no organization ${id}.` });
  return row.no;
}

/** @param lock locks the environment until the transaction ends, for a change. */
export async function requireEnvironment(
  ctx: ManageContext,
  db: Queryable,
  id: string,
  lock = false,
): Promise<Environment> {
  const env = await findEnvironment(db, id, lock);
  if (!env || (ctx.caller.kind !== 'operator' && ctx.env?.no !== env.no))
    throw new ApiError('not_found', { message: `There is no environment ${id}.` });
  return env;
}

/** The account whose memberships restrict a list; null for the operator, whose lists are not restricted. */
export function accountOf({ caller }: ManageContext): number | null {
  if (caller.kind === 'operator') return null;
  if (caller.kind !== 'dashboard') throw new ApiError('forbidden');
  return caller.account.no;
}

/** The number of the environment that a list is restricted to. */
export async function manageableEnvironment(ctx: ManageContext, id: string): Promise<number> {
  const [row] = await ctx.db.query<{ no: number }>(
    `SELECT no FROM environments e WHERE id = $1 AND ($2::int IS NULL
       OR EXISTS (SELECT 1 FROM organization_accounts m WHERE m.org = e.org AND m.account = $2))`,
    [id, accountOf(ctx)],
  );
  if (!row) throw new ApiError('not_found', { message: `There is no environment ${id}.` });
  return row.no;
}

/** The only organization. If there are several, the caller has to name one. */
export async function onlyOrganization(db: Queryable): Promise<string> {
  const [first, second] = await db.query<{ id: string }>(
    'SELECT id FROM organizations WHERE deleted_at IS NULL ORDER BY no LIMIT 2',
  );
  if (!first) throw new ApiError('not_found', { message: 'The store is empty: run npm start once first.' });
  if (second)
    throw new ApiError('invalid_request', {
      param: 'organizationId',
      message: 'There are several organizations: say which.',
    });
  return first.id;
}
