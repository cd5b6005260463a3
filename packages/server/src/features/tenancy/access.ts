import { ApiError } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { ControlContext, Environment } from '../context.ts';
import { findEnvironment } from './environments.ts';

/** What a caller of the control plane may manage. The operator, who holds the store, may manage everything in it. */

export async function requireOrganization(ctx: ControlContext, db: Queryable, id: string): Promise<number> {
  const [row] = await db.query<{ no: number }>('SELECT no FROM organizations WHERE id = $1', [id]);
  if (!row || ctx.caller.kind !== 'operator')
    throw new ApiError('not_found', { message: `There is no organization ${id}.` });
  return row.no;
}

/** @param lock until the end of the transaction, for a change. */
export async function requireEnvironment(
  ctx: ControlContext,
  db: Queryable,
  id: string,
  lock = false,
): Promise<Environment> {
  const env = await findEnvironment(db, id, lock);
  if (!env || ctx.caller.kind !== 'operator')
    throw new ApiError('not_found', { message: `There is no environment ${id}.` });
  return env;
}

/** Where there is just one organization, it need not be named. */
export async function onlyOrganization(db: Queryable): Promise<string> {
  const [first, second] = await db.query<{ id: string }>('SELECT id FROM organizations ORDER BY no LIMIT 2');
  if (!first) throw new ApiError('not_found', { message: 'The store is empty: run npm start once first.' });
  if (second)
    throw new ApiError('invalid_request', {
      param: 'organizationId',
      message: 'There are several organizations: say which.',
    });
  return first.id;
}
