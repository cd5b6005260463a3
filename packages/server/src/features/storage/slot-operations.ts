import { ApiError } from '@parley/protocol';
import type { Input, Output } from '@parley/protocol';
import { record } from '../audit/operations.ts';
import type { ControlContext, EnvironmentContext } from '../context.ts';
import { requireEnvironment } from '../tenancy/access.ts';
import { asideColumns, joinFaults } from './aside.ts';
import { findSlot } from './sql.ts';

/** What the operator sees and does of customers' databases that harm the service (docs/storage.md). */

export async function list(
  ctx: ControlContext,
  { environmentId }: Input<'storage.listSlots'>,
): Promise<Output<'storage.listSlots'>> {
  const env = environmentId === undefined ? null : (await requireEnvironment(ctx, ctx.db, environmentId)).no;
  const data = await ctx.db.query<Output<'storage.listSlots'>['data'][number]>(
    `SELECT e.id AS "environmentId", x.slot, x.type, x.shown_url AS url, coalesce(s.mode <> 'managed' AND s.active = x.slot, false) AS active,
       f.faulted_at AS "faultedAt", ${asideColumns}
     FROM storage_slots x JOIN environments e ON e.no = x.env LEFT JOIN storage s ON s.env = x.env ${joinFaults}
     WHERE $1::int IS NULL OR x.env = $1 ORDER BY x.env, x.slot`,
    [env],
  );
  return { data };
}

const set = async (
  ctx: EnvironmentContext,
  slot: 'a' | 'b',
  action: 'storage.setAside' | 'storage.takeBack',
): Promise<void> => {
  await ctx.db.tx(async (tx) => {
    const found = await findSlot(tx, ctx.env.no, slot);
    if (!found) throw new ApiError('not_found', { message: `Slot ${slot} is empty.` });
    await tx.query(
      `INSERT INTO slot_faults AS f (env, slot, aside_until) VALUES ($1, $2, $3)
       ON CONFLICT (env, slot) DO UPDATE SET aside_until = excluded.aside_until`,
      [ctx.env.no, slot, action === 'storage.setAside' ? 'infinity' : null],
    );
    // Its sink may be waiting after failures.
    await tx.query(`UPDATE storage SET due_at = '-infinity' WHERE env = $1`, [ctx.env.no]);
    const after = action === 'storage.setAside' ? 'operator' : null;
    await record(ctx, tx, {
      ...{ where: { env: ctx.env.no }, action, target: slot },
      ...{ before: { aside: found.aside }, after: { aside: after } },
    });
  });
};

export const setAside = (ctx: EnvironmentContext, { slot }: Input<'storage.setAside'>): Promise<void> =>
  set(ctx, slot, 'storage.setAside');
export const takeBack = (ctx: EnvironmentContext, { slot }: Input<'storage.takeBack'>): Promise<void> =>
  set(ctx, slot, 'storage.takeBack');
