import { ApiError } from '@parley/protocol';
import type { AuditEntry, Input, OperationName, Output } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { Caller, ControlContext } from '../context.ts';
import { decodeCursor, isInteger, keyPage, pageLimit } from '../pages.ts';
import { requireEnvironment } from '../tenancy/access.ts';

/** DECISIONS, Control plane: every change by those who manage environments, in the transaction of the change. */

interface Change {
  /** The environment that it concerns, by number, or the organization alone. */
  where: { env: number } | { org: number };
  action: OperationName;
  /** The id of what was changed. A user of a tenant is named by `user` instead, by number: an erasure renames it. */
  target?: string;
  user?: number;
  /** The fields that changed, as they were and as they are; null where there was, or is, nothing. Never a secret. */
  before: object | null;
  after: object | null;
}

/** What servers and clients do is their own business; the rest is recorded. */
export async function record(ctx: ControlContext, tx: Queryable, change: Change): Promise<void> {
  const actor = actorOf(ctx.caller);
  if (actor === null) return;
  const { where, action, target = null, user = null, before, after } = change;
  await tx.query(
    `INSERT INTO audit (id, env, org, actor, action, target, usr, ip, request_id, changes)
     VALUES ($1, $2, coalesce($3, (SELECT org FROM environments WHERE no = $2)), $4, $5, $6, $7, $8, $9, $10)`,
    [
      ctx.services.ids.make('audit'),
      'env' in where ? where.env : null,
      'org' in where ? where.org : null,
      ...[actor, action, target, user, ctx.ip ?? null, ctx.requestId, JSON.stringify({ before, after })],
    ],
  );
}

function actorOf(caller: Caller): string | null {
  if (caller.kind === 'operator') return `operator:${caller.name}`;
  return caller.kind === 'dashboard' ? caller.account.email : null;
}

/** Only what differs: a change that changes nothing is not recorded. */
export function difference<T extends object>(
  before: T,
  after: T,
): { before: Partial<T>; after: Partial<T> } | null {
  const changed = (Object.keys(after) as (keyof T)[]).filter(
    (key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]),
  );
  const pick = (of: T) => Object.fromEntries(changed.map((key) => [key, of[key]])) as Partial<T>;
  return changed.length === 0 ? null : { before: pick(before), after: pick(after) };
}

export async function list(ctx: ControlContext, input: Input<'audit.list'>): Promise<Output<'audit.list'>> {
  if (ctx.caller.kind !== 'operator') throw new ApiError('forbidden');
  const limit = pageLimit(input.limit);
  const values: unknown[] = [limit + 1];
  const conditions: string[] = [];
  const where = (condition: string, value: unknown) => {
    values.push(value);
    conditions.push(`${condition} $${values.length}`);
  };
  if (input.cursor !== undefined) where('a.no <', decodeCursor(input.cursor, isInteger));
  if (input.environmentId !== undefined)
    where('a.env =', (await requireEnvironment(ctx, ctx.db, input.environmentId)).no);
  if (input.action !== undefined) where('a.action =', input.action);
  if (input.actor !== undefined) where('a.actor =', input.actor);
  const rows = await ctx.db.query<AuditEntry & { no: number }>(
    `SELECT a.no, a.id, a.created_at AS at, o.id AS "organizationId", e.id AS "environmentId", a.actor, a.action,
       coalesce(u.id, a.target) AS target, a.ip, a.request_id AS "requestId", a.changes
     FROM audit a JOIN organizations o ON o.no = a.org LEFT JOIN environments e ON e.no = a.env
     LEFT JOIN users u ON u.env = a.env AND u.no = a.usr
     ${conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''} ORDER BY a.no DESC LIMIT $1`,
    values,
  );
  return keyPage(
    rows,
    limit,
    (row) => row.no,
    ({ no: _no, ...entry }): AuditEntry => entry,
  );
}
