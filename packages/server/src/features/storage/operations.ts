import { bufferRetentions } from '@parley/protocol';
import type { BufferRetentionName, StorageRecord } from '@parley/protocol';
import { invalid } from '../../platform/api-errors.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { Context, Operation } from '../context.ts';
import { audit, noSlot, tried } from './slot-operations.ts';
import * as sql from './sql.ts';
import type { Copy, LockedStorage, SlotRow } from './sql.ts';
import { storageRecord } from './view.ts';
import { bufferHours, setBufferHours } from '../tenancy/sql/environments.ts';

/** storage#slots: where history is kept, and what is copied when that changes. */

export const get = (ctx: Context): Promise<StorageRecord> => storageRecord(ctx);

const newCopy = (startedAt: string, kind: Copy['kind'], total: number, then?: 'fill'): Copy => ({
  kind,
  conv: 0,
  seq: 0,
  done: 0,
  total,
  startedAt,
  ...(then ? { then } : {}),
});

export const update: Operation<Context, 'storage.update'> = async (ctx, input) => {
  const { bufferRetention } = input;
  const mode = input.mode === 'byo' ? 'byo_db' : input.mode;
  if (mode === undefined && bufferRetention === undefined)
    throw invalid('mode', 'Give a mode or a bufferRetention.');
  await ctx.db.tx(async (tx) => {
    const storage = await sql.lockStorage(tx, ctx.env.no);
    if (bufferRetention !== undefined) await retain(ctx, tx, bufferRetention);
    if (mode !== undefined && (storage.mode === 'byo_db' ? 'byo_db' : 'managed') !== mode) {
      if (mode === 'byo_db') await leave(ctx, tx, storage);
      else await comeBack(ctx, tx, storage);
      await audit(ctx, tx, 'storage.update', { mode: mode === 'byo_db' ? 'managed' : 'byo_db' }, { mode });
    }
  });
  ctx.services.storage.wake();
  return storageRecord(ctx);
};

async function retain(ctx: Context, tx: Queryable, name: BufferRetentionName): Promise<void> {
  const before = await bufferHours(tx, ctx.env.no);
  const hours = bufferRetentions[name];
  if (before === hours) return;
  await setBufferHours(tx, ctx.env.no, hours);
  const nameOf = Object.entries(bufferRetentions).find(([, h]) => h === before)?.[0] ?? null;
  await audit(ctx, tx, 'storage.update', { bufferRetention: nameOf }, { bufferRetention: name });
}

/**
 * Moves history to the customer's own database: everything that is here is copied there, and changes from now on are
 * recorded for it.
 */
async function leave(ctx: Context, tx: Queryable, storage: LockedStorage): Promise<void> {
  if (storage.mode === 'returning') {
    // History was on its way back: what has come back leaves again when its time comes. The copy that brought it back
    // may have ended another one that was not finished, so everything that is here is written once more before
    // anything leaves. (A `cold_seq` of 1 means that something is below it; the first seq is the conversation's
    // creation, never a message.)
    await sql.leaveAgain(tx, ctx.env.no);
    return sql.setMode(tx, ctx.env.no, {
      mode: 'byo_db',
      copy: newCopy(storage.now, 'fill', await sql.messagesOf(tx, ctx.env.no)),
    });
  }
  const slots = await sql.slotsOf(tx, ctx.env.no);
  const chosen =
    slots.find((s) => s.slot === storage.active) ?? slots.find((s) => s.lastTest?.ok) ?? slots[0];
  if (!chosen?.lastTest?.ok)
    throw invalid('mode', 'Set the database of a slot first, and test it: its last test must have passed.');
  // What was no longer in the database when history came back may be there again.
  if (storage.missing > 0) await sql.expectMissing(tx, ctx.env.no);
  await sql.setMode(tx, ctx.env.no, {
    mode: 'byo_db',
    active: chosen.slot,
    previous: null,
    copy: newCopy(storage.now, 'fill', await sql.messagesOf(tx, ctx.env.no)),
  });
}

/**
 * Moves history back to this service: what only the customer's database has is fetched first; if there is nothing, it
 * is done at once.
 */
async function comeBack(ctx: Context, tx: Queryable, storage: LockedStorage): Promise<void> {
  if (storage.hasCold) {
    if (storage.previous !== null)
      throw invalid('mode', 'History is still being moved to another database: wait until that is done.');
    return sql.setMode(tx, ctx.env.no, {
      mode: 'returning',
      copy: newCopy(storage.now, 'return', await sql.coldOf(tx, ctx.env.no)),
    });
  }
  await sql.forgetSink(tx, ctx.env.no);
  await sql.setMode(tx, ctx.env.no, { mode: 'managed', copy: null, previous: null });
}

export const promote: Operation<Context, 'storage.promote'> = async (ctx, { slot }) => {
  const row = await sql.findSlot(ctx.db, ctx.env.no, slot);
  if (!row) throw noSlot(slot);
  const report = await tried(ctx, row);
  if (!report.ok) throw invalid('slot', `The test of slot ${slot} failed: ${report.errors.join(' ')}`);
  await ctx.db.tx(async (tx) => {
    const storage = await sql.lockStorage(tx, ctx.env.no);
    const slots = await sql.slotsOf(tx, ctx.env.no);
    const next = slots.find((s) => s.slot === slot);
    if (next?.changedAt !== row.changedAt)
      throw invalid('slot', `Slot ${slot} was changed meanwhile: promote it again.`);
    if (storage.active === slot) return;
    // Promoting the slot that history is being moved from cancels the move.
    if (storage.copy !== null && storage.copy.kind !== 'rewrite' && storage.previous !== slot)
      throw invalid('slot', 'History is being copied: wait until that is done.');
    const before = slots.find((s) => s.slot === storage.active);
    const same = before !== undefined && isSame(ctx, before, next);
    if (storage.mode === 'managed') await sql.setActive(tx, ctx.env.no, slot);
    else if (same)
      await sql.setMode(tx, ctx.env.no, { mode: storage.mode, copy: storage.copy, active: slot });
    else {
      const total = (await sql.coldOf(tx, ctx.env.no)) + (await sql.messagesOf(tx, ctx.env.no));
      const copy = newCopy(storage.now, 'move', total, 'fill');
      await sql.setMode(tx, ctx.env.no, { mode: storage.mode, copy, active: slot, previous: storage.active });
    }
    await audit(ctx, tx, 'storage.promote', { active: storage.active }, { active: slot }, slot);
  });
  ctx.services.storage.wake();
  return storageRecord(ctx);
};

/** True for the same database under another user or address, for which nothing has to be copied. */
function isSame({ env, services: { storage } }: Context, a: SlotRow, b: SlotRow): boolean {
  if (a.type !== b.type || a.schema !== b.schema) return false;
  const { urlOf } = storage.connections;
  // The whole URLs: what tells two endpoints apart may stand in their query, which is not shown.
  if (a.type === 'http') return urlOf(env.no, a) === urlOf(env.no, b);
  return a.databaseId !== null && a.databaseId === b.databaseId;
}

export async function resync(ctx: Context): Promise<StorageRecord> {
  await ctx.db.tx(async (tx) => {
    const storage = await sql.lockStorage(tx, ctx.env.no);
    if (storage.mode !== 'byo_db')
      throw invalid('mode', 'History is kept with this service: there is nothing to write again.');
    if (storage.copy !== null && storage.copy.kind !== 'rewrite')
      throw invalid('mode', 'History is being copied: wait until that is done.');
    const copy = newCopy(storage.now, 'rewrite', await sql.messagesOf(tx, ctx.env.no));
    await sql.setMode(tx, ctx.env.no, { mode: 'byo_db', copy });
    await audit(ctx, tx, 'storage.resync', null, null);
  });
  ctx.services.storage.wake();
  return storageRecord(ctx);
}
