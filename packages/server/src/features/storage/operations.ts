import { ApiError, bufferRetentions } from '@parley/protocol';
import type { BufferRetentionName, DatabaseTest, Input, Output, StorageRecord } from '@parley/protocol';
import { HistoryError } from '../../platform/history/port.ts';
import type { HistoryEngine, HistoryReport } from '../../platform/history/port.ts';
import { emptyReport } from '../../platform/history/shared.ts';
import { maskUrl, parseTarget, TargetError } from '../../platform/history/target.ts';
import { OutboundRefused } from '../../platform/outbound/outbound.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { record } from '../audit/operations.ts';
import type { Context } from '../context.ts';
import { secretPrefix } from '../webhooks/signature.ts';
import { takeBack } from './aside.ts';
import type { Connections } from './connections.ts';
import * as sql from './sql.ts';
import type { Copy, LockedStorage, SlotName, SlotRow } from './sql.ts';
import { storageRecord, viewSlot } from './view.ts';

/** SPEC 4, Storage: the history database. Every change is audited, without secrets. */

const secretHours = 24;
const hourMs = 3_600_000;

const bad = (param: string, message: string) => new ApiError('invalid_request', { param, message });
const noSlot = (slot: SlotName) => new ApiError('not_found', { message: `Slot ${slot} is empty.` });
const nowOf = (ctx: Context): string => new Date(ctx.services.clock.now()).toISOString();

export const get = (ctx: Context): Promise<StorageRecord> => storageRecord(ctx);

const audit = (
  ctx: Context,
  tx: Queryable,
  action: Parameters<typeof record>[2]['action'],
  before: object | null,
  after: object | null,
  target?: string,
) =>
  record(ctx, tx, {
    where: { env: ctx.env.no },
    action,
    ...(target === undefined ? {} : { target }),
    before,
    after,
  });

/** Refuses a URL that is invalid or leads into our own network. */
function check(
  ctx: Context,
  param: string,
  url: string,
  given: { type?: HistoryEngine | undefined; schema?: string | undefined },
): HistoryEngine {
  try {
    const target = parseTarget(url, given);
    if (target.engine === 'http') ctx.services.storage.outbound.checkUrl(target.url);
    for (const { host } of target.hosts) ctx.services.storage.outbound.checkHost(host);
    return target.engine;
  } catch (error) {
    if (error instanceof TargetError)
      throw bad(error.message.includes('schema') ? 'schema' : param, error.message);
    if (error instanceof OutboundRefused) throw bad(param, `The URL is refused: ${error.message}.`);
    throw error;
  }
}

const newSecret = (ctx: Context): string =>
  `${secretPrefix}${Buffer.from(ctx.services.ids.random(32)).toString('base64')}`;

export async function setDatabase(
  ctx: Context,
  input: Input<'storage.setDatabase'>,
): Promise<Output<'storage.setDatabase'>> {
  const { slot, url, replicaUrl, ...given } = input;
  const type = check(ctx, 'url', url, given);
  if (replicaUrl !== undefined) {
    if (type === 'http') throw bad('replicaUrl', 'An http endpoint has no replica.');
    check(ctx, 'replicaUrl', replicaUrl, { ...given, type });
  }
  const signingSecret = type === 'http' ? newSecret(ctx) : undefined;
  const row = await ctx.db.tx(async (tx) => {
    const storage = await sql.lockStorage(tx, ctx.env.no);
    if (storage.mode !== 'managed' && (storage.active === slot || storage.previous === slot))
      throw bad('slot', `Slot ${slot} is in use. Set the other one, test it and promote it.`);
    return put(ctx, tx, slot, {
      ...{ type, url, replicaUrl: replicaUrl ?? null, schema: given.schema ?? null, shownUrl: maskUrl(url) },
      shownReplicaUrl: replicaUrl === undefined ? null : maskUrl(replicaUrl),
      secrets: signingSecret === undefined ? null : [{ secret: signingSecret, until: null }],
    });
  });
  return { ...viewSlot(row), ...(signingSecret === undefined ? {} : { signingSecret }) };
}

async function put(ctx: Context, tx: Queryable, slot: SlotName, given: sql.NewSlot): Promise<SlotRow> {
  const before = await sql.findSlot(tx, ctx.env.no, slot);
  await sql.putSlot(tx, ctx.services.vault, ctx.env.no, slot, given, nowOf(ctx));
  await takeBack(tx, ctx.env.no, slot);
  const after = (await sql.findSlot(tx, ctx.env.no, slot))!;
  const shown = (row: SlotRow | undefined) =>
    row ? { type: row.type, url: row.shownUrl, schema: row.schema, replicaUrl: row.shownReplicaUrl } : null;
  await audit(ctx, tx, 'storage.setDatabase', shown(before), shown(after), slot);
  return after;
}

export async function rotateSecret(
  ctx: Context,
  { slot }: Input<'storage.rotateSecret'>,
): Promise<Output<'storage.rotateSecret'>> {
  const signingSecret = newSecret(ctx);
  await ctx.db.tx(async (tx) => {
    await sql.lockStorage(tx, ctx.env.no);
    const row = await sql.findSlot(tx, ctx.env.no, slot);
    if (!row) throw noSlot(slot);
    if (row.type !== 'http') throw bad('slot', 'Only an http endpoint has a signing secret.');
    const now = ctx.services.clock.now();
    const until = new Date(now + secretHours * hourMs).toISOString();
    const [newest] = ctx.services.storage.connections.secretsOf(ctx.env.no, row);
    const secrets = [{ secret: signingSecret, until: null }, ...(newest ? [{ ...newest, until }] : [])];
    await sql.putSecrets(tx, ctx.services.vault, ctx.env.no, slot, secrets, nowOf(ctx));
    await audit(ctx, tx, 'storage.rotateSecret', null, null, slot);
  });
  return { signingSecret };
}

/** Tries a slot, and keeps what came of it. */
async function tried(ctx: Context, row: SlotRow): Promise<HistoryReport> {
  await ctx.services.storage.countTry(ctx.env.no, row.slot);
  let report: HistoryReport;
  try {
    const history = await ctx.services.storage.connections.tryOut(ctx.env, row);
    report = await history.test();
    void history.close();
  } catch (error) {
    if (!(error instanceof HistoryError)) throw error;
    report = { ...emptyReport(row.type), errors: [error.message] };
  }
  if (report.ok) await takeBack(ctx.db, ctx.env.no, row.slot);
  else ctx.services.storage.connections.drop(ctx.env.no, row.slot);
  await sql.putTest(ctx.db, ctx.env.no, row, report, nowOf(ctx));
  return report;
}

export async function testDatabase(
  ctx: Context,
  input: Input<'storage.testDatabase'>,
): Promise<DatabaseTest> {
  const { active } = await sql.storageOf(ctx.db, ctx.env.no);
  const slot = input.slot ?? active ?? 'a';
  const row = await sql.findSlot(ctx.db, ctx.env.no, slot);
  if (!row) throw noSlot(slot);
  const { databaseId: _id, ...report } = await tried(ctx, row);
  return { ...report, egressIp: ctx.services.storage.egressIp };
}

export async function migrateDatabase(
  ctx: Context,
  input: Input<'storage.migrateDatabase'>,
): Promise<Output<'storage.migrateDatabase'>> {
  const { adminUrl, ...given } = input;
  if (check(ctx, 'adminUrl', adminUrl, given) === 'http')
    throw bad('adminUrl', 'An http endpoint keeps its own tables: there is nothing to migrate.');
  const storage = await sql.storageOf(ctx.db, ctx.env.no);
  const taken = storage.mode !== 'managed' && (storage.active === 'a' || storage.previous === 'a');
  const slot: SlotName = taken ? 'b' : 'a';
  await ctx.services.storage.countTry(ctx.env.no, slot);
  let done: Awaited<ReturnType<Connections['migrate']>>;
  try {
    done = await ctx.services.storage.connections.migrate(ctx.env, slot, { url: adminUrl, ...given });
  } catch (error) {
    if (error instanceof HistoryError) throw bad('adminUrl', error.message);
    throw error;
  }
  const { runtimeUrl, notes, engine } = done;
  const shownUrl = runtimeUrl === null ? null : maskUrl(runtimeUrl);
  const row = await ctx.db.tx(async (tx) => {
    await sql.lockStorage(tx, ctx.env.no);
    await audit(ctx, tx, 'storage.migrateDatabase', null, { type: engine, runtimeUrl: shownUrl });
    if (runtimeUrl === null) return undefined;
    return put(ctx, tx, slot, {
      ...{
        type: engine,
        url: runtimeUrl,
        replicaUrl: null,
        shownReplicaUrl: null,
        schema: given.schema ?? null,
      },
      ...{ shownUrl: shownUrl!, secrets: null },
    });
  });
  if (!row) return { runtimeUrl: null, notes, slot: null };
  const { ok, errors } = await tried(ctx, row);
  const said = [
    ...notes,
    ...(taken ? ['Slot a is in use: the URL was saved to slot b. Promote it.'] : []),
    ...(ok ? [] : ['The test of the new user failed:', ...errors]),
  ];
  return {
    runtimeUrl: shownUrl,
    notes: said,
    slot: viewSlot((await sql.findSlot(ctx.db, ctx.env.no, slot))!),
  };
}

const newCopy = (startedAt: string, kind: Copy['kind'], total: number, then?: 'fill'): Copy => ({
  ...{ kind, conv: 0, seq: 0, done: 0, total, startedAt },
  ...(then ? { then } : {}),
});

export async function update(ctx: Context, input: Input<'storage.update'>): Promise<StorageRecord> {
  const { bufferRetention } = input;
  const mode = input.mode === 'byo' ? 'byo_db' : input.mode;
  if (mode === undefined && bufferRetention === undefined)
    throw bad('mode', 'Give a mode or a bufferRetention.');
  await ctx.db.tx(async (tx) => {
    const storage = await sql.lockStorage(tx, ctx.env.no);
    if (bufferRetention !== undefined) await retain(ctx, tx, bufferRetention);
    if (mode !== undefined && (storage.mode === 'byo_db' ? 'byo_db' : 'managed') !== mode) {
      if (mode === 'byo_db') await leave(ctx, tx, storage);
      else await comeBack(ctx, tx, storage);
      await audit(ctx, tx, 'storage.update', { mode: mode === 'byo_db' ? 'managed' : 'byo_db' }, { mode });
    } else if (mode === 'managed' && storage.mode === 'returning') return;
  });
  ctx.services.storage.retention.forget(ctx.env.no);
  ctx.services.storage.wake();
  return storageRecord(ctx);
}

async function retain(ctx: Context, tx: Queryable, name: BufferRetentionName): Promise<void> {
  const [before] = await tx.query<{ hours: number | null }>(
    'SELECT buffer_hours AS hours FROM environments WHERE no = $1',
    [ctx.env.no],
  );
  const hours = bufferRetentions[name];
  if (before!.hours === hours) return;
  await tx.query('UPDATE environments SET buffer_hours = $2 WHERE no = $1', [ctx.env.no, hours]);
  const nameOf = Object.entries(bufferRetentions).find(([, h]) => h === before!.hours)?.[0] ?? null;
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
    await tx.query(
      'UPDATE sink_conversations SET cold_seq = 1, oldest_at = $2 WHERE env = $1 AND cold_seq > 0',
      [ctx.env.no, new Date(0)],
    );
    return sql.setMode(tx, ctx.env.no, {
      mode: 'byo_db',
      copy: newCopy(storage.now, 'fill', await sql.messagesOf(tx, ctx.env.no)),
    });
  }
  const slots = await sql.slotsOf(tx, ctx.env.no);
  const chosen =
    slots.find((s) => s.slot === storage.active) ?? slots.find((s) => s.lastTest?.ok) ?? slots[0];
  if (!chosen?.lastTest?.ok)
    throw bad('mode', 'Set the database of a slot first, and test it: its last test must have passed.');
  // What was no longer in the database when history came back may be there again.
  if (storage.missing > 0) await sql.expectMissing(tx, ctx.env.no);
  await sql.setMode(tx, ctx.env.no, {
    ...{ mode: 'byo_db', active: chosen.slot, previous: null },
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
      throw bad('mode', 'History is still being moved to another database: wait until that is done.');
    return sql.setMode(tx, ctx.env.no, {
      mode: 'returning',
      copy: newCopy(storage.now, 'return', await sql.coldOf(tx, ctx.env.no)),
    });
  }
  await sql.forgetSink(tx, ctx.env.no);
  await sql.setMode(tx, ctx.env.no, { mode: 'managed', copy: null, previous: null });
}

export async function promote(ctx: Context, { slot }: Input<'storage.promote'>): Promise<StorageRecord> {
  const row = await sql.findSlot(ctx.db, ctx.env.no, slot);
  if (!row) throw noSlot(slot);
  const report = await tried(ctx, row);
  if (!report.ok) throw bad('slot', `The test of slot ${slot} failed: ${report.errors.join(' ')}`);
  await ctx.db.tx(async (tx) => {
    const storage = await sql.lockStorage(tx, ctx.env.no);
    const slots = await sql.slotsOf(tx, ctx.env.no);
    const next = slots.find((s) => s.slot === slot);
    if (next?.changedAt !== row.changedAt)
      throw bad('slot', `Slot ${slot} was changed meanwhile: promote it again.`);
    if (storage.active === slot) return;
    // Promoting the slot that history is being moved from cancels the move.
    if (storage.copy !== null && storage.copy.kind !== 'rewrite' && storage.previous !== slot)
      throw bad('slot', 'History is being copied: wait until that is done.');
    const before = slots.find((s) => s.slot === storage.active);
    const same = before !== undefined && isSame(ctx, before, next);
    if (storage.mode === 'managed')
      await tx.query('UPDATE storage SET active = $2 WHERE env = $1', [ctx.env.no, slot]);
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
}

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
      throw bad('mode', 'History is kept with this service: there is nothing to write again.');
    if (storage.copy !== null && storage.copy.kind !== 'rewrite')
      throw bad('mode', 'History is being copied: wait until that is done.');
    const copy = newCopy(storage.now, 'rewrite', await sql.messagesOf(tx, ctx.env.no));
    await sql.setMode(tx, ctx.env.no, { mode: 'byo_db', copy });
    await audit(ctx, tx, 'storage.resync', null, null);
  });
  ctx.services.storage.wake();
  return storageRecord(ctx);
}
