import { ApiError } from '@parley/protocol';
import type { Input } from '@parley/protocol';
import { invalid } from '../../platform/api-errors.ts';
import { HistoryError } from '../../platform/history/port.ts';
import type { HistoryEngine, HistoryReport } from '../../platform/history/port.ts';
import { emptyReport } from '../../platform/history/shared.ts';
import { maskUrl, parseTarget, TargetError } from '../../platform/history/target.ts';
import { OutboundRefused } from '../../platform/outbound/outbound.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { record } from '../audit/operations.ts';
import type { Context, ControlContext, EnvironmentContext, Operation } from '../context.ts';
import { requireEnvironment } from '../tenancy/access.ts';
import { secretPrefix } from '../webhooks/signature.ts';
import * as faults from './sql/faults.ts';
import type { Connections } from './connections.ts';
import * as sql from './sql.ts';
import type { SlotName, SlotRow } from './sql.ts';
import { viewSlot } from './view.ts';

/**
 * storage#slots: the slots with the URLs of history databases. A slot is set, tested and migrated by its owner, and
 * set aside by the operator (docs/storage.md). Every change is audited, without secrets.
 */

const secretHours = 24;
const hourMs = 3_600_000;

export const noSlot = (slot: SlotName) => new ApiError('not_found', { message: `Slot ${slot} is empty.` });
export const nowOf = (ctx: Context): string => new Date(ctx.services.clock.now()).toISOString();

export const audit = (
  ctx: EnvironmentContext,
  tx: Queryable,
  action: Parameters<typeof record>[2]['action'],
  before: object | null,
  after: object | null,
  target?: string,
) => record(ctx, tx, { action, target, before, after });

/** Refuses a URL that is invalid or leads into our own network. */
function check(
  ctx: Context,
  param: string,
  url: string,
  given: { type?: HistoryEngine | undefined; schema?: string | undefined },
): HistoryEngine {
  try {
    const target = parseTarget(url, given);
    const { outbound } = ctx.services.webhooks;
    if (target.engine === 'http') outbound.checkUrl(target.url);
    for (const { host } of target.hosts) outbound.checkHost(host);
    return target.engine;
  } catch (error) {
    if (error instanceof TargetError)
      throw invalid(error.message.includes('schema') ? 'schema' : param, error.message);
    if (error instanceof OutboundRefused) throw invalid(param, `The URL is refused: ${error.message}.`);
    throw error;
  }
}

const newSecret = (ctx: Context): string =>
  `${secretPrefix}${Buffer.from(ctx.services.ids.random(32)).toString('base64')}`;

export const setDatabase: Operation<Context, 'storage.setDatabase'> = async (ctx, input) => {
  const { slot, url, replicaUrl, ...given } = input;
  const type = check(ctx, 'url', url, given);
  if (replicaUrl !== undefined) {
    if (type === 'http') throw invalid('replicaUrl', 'An http endpoint has no replica.');
    check(ctx, 'replicaUrl', replicaUrl, { ...given, type });
  }
  const signingSecret = type === 'http' ? newSecret(ctx) : undefined;
  const row = await ctx.db.tx(async (tx) => {
    const storage = await sql.lockStorage(tx, ctx.env.no);
    if (storage.mode !== 'managed' && (storage.active === slot || storage.previous === slot))
      throw invalid('slot', `Slot ${slot} is in use. Set the other one, test it and promote it.`);
    return put(ctx, tx, slot, {
      type,
      url,
      replicaUrl: replicaUrl ?? null,
      schema: given.schema ?? null,
      secrets: signingSecret === undefined ? null : [{ secret: signingSecret, until: null }],
    });
  });
  return { ...viewSlot(row), ...(signingSecret === undefined ? {} : { signingSecret }) };
};

async function put(ctx: Context, tx: Queryable, slot: SlotName, given: sql.NewSlot): Promise<SlotRow> {
  const before = await sql.findSlot(tx, ctx.env.no, slot);
  await sql.putSlot(tx, ctx.services.vault, ctx.env.no, slot, given, nowOf(ctx));
  await faults.takeBack(tx, ctx.env.no, slot);
  const after = (await sql.findSlot(tx, ctx.env.no, slot))!;
  const shown = (row: SlotRow | undefined) =>
    row ? { type: row.type, url: row.shownUrl, schema: row.schema, replicaUrl: row.shownReplicaUrl } : null;
  await audit(ctx, tx, 'storage.setDatabase', shown(before), shown(after), slot);
  return after;
}

export const rotateSecret: Operation<Context, 'storage.rotateSecret'> = async (ctx, { slot }) => {
  const signingSecret = newSecret(ctx);
  await ctx.db.tx(async (tx) => {
    await sql.lockStorage(tx, ctx.env.no);
    const row = await sql.findSlot(tx, ctx.env.no, slot);
    if (!row) throw noSlot(slot);
    if (row.type !== 'http') throw invalid('slot', 'Only an http endpoint has a signing secret.');
    const now = ctx.services.clock.now();
    const until = new Date(now + secretHours * hourMs).toISOString();
    const [newest] = ctx.services.storage.connections.secretsOf(ctx.env.no, row);
    const secrets = [{ secret: signingSecret, until: null }, ...(newest ? [{ ...newest, until }] : [])];
    await sql.putSecrets(tx, ctx.services.vault, ctx.env.no, slot, secrets, nowOf(ctx));
    await audit(ctx, tx, 'storage.rotateSecret', null, null, slot);
  });
  return { signingSecret };
};

/** Tries a slot, and keeps what came of it. */
export async function tried(ctx: Context, row: SlotRow): Promise<HistoryReport> {
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
  if (report.ok) await faults.takeBack(ctx.db, ctx.env.no, row.slot);
  else ctx.services.storage.connections.drop(ctx.env.no, row.slot);
  await sql.putTest(ctx.db, ctx.env.no, row, report, nowOf(ctx));
  return report;
}

export const testDatabase: Operation<Context, 'storage.testDatabase'> = async (ctx, input) => {
  const { active } = await sql.storageOf(ctx.db, ctx.env.no);
  const slot = input.slot ?? active ?? 'a';
  const row = await sql.findSlot(ctx.db, ctx.env.no, slot);
  if (!row) throw noSlot(slot);
  const { databaseId: _id, ...report } = await tried(ctx, row);
  return { ...report, egressIp: ctx.services.storage.egressIp };
};

export const migrateDatabase: Operation<Context, 'storage.migrateDatabase'> = async (ctx, input) => {
  const { adminUrl, ...given } = input;
  const type = check(ctx, 'adminUrl', adminUrl, given);
  if (type === 'http')
    throw invalid('adminUrl', 'An http endpoint keeps its own tables: there is nothing to migrate.');
  const storage = await sql.storageOf(ctx.db, ctx.env.no);
  const taken = storage.mode !== 'managed' && (storage.active === 'a' || storage.previous === 'a');
  const slot: SlotName = taken ? 'b' : 'a';
  await ctx.services.storage.countTry(ctx.env.no, slot);
  let done: Awaited<ReturnType<Connections['migrate']>>;
  try {
    done = await ctx.services.storage.connections.migrate(ctx.env, slot, { url: adminUrl, ...given });
  } catch (error) {
    if (error instanceof HistoryError) throw invalid('adminUrl', error.message);
    throw error;
  }
  const { runtimeUrl, notes } = done;
  const shownUrl = runtimeUrl === null ? null : maskUrl(runtimeUrl);
  const row = await ctx.db.tx(async (tx) => {
    await sql.lockStorage(tx, ctx.env.no);
    await audit(ctx, tx, 'storage.migrateDatabase', null, { type, runtimeUrl: shownUrl });
    if (runtimeUrl === null) return undefined;
    return put(ctx, tx, slot, {
      type,
      url: runtimeUrl,
      replicaUrl: null,
      schema: given.schema ?? null,
      secrets: null,
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
};

// ── The operator ──

export const list: Operation<ControlContext, 'storage.listSlots'> = async (ctx, { environmentId }) => {
  const env = environmentId === undefined ? null : (await requireEnvironment(ctx, ctx.db, environmentId)).no;
  return { data: await faults.listSlots(ctx.db, env) };
};

const set =
  (action: 'storage.setAside' | 'storage.takeBack') =>
  (ctx: EnvironmentContext, { slot }: Input<'storage.setAside'>): Promise<void> =>
    ctx.db.tx(async (tx) => {
      const found = await sql.findSlot(tx, ctx.env.no, slot);
      if (!found) throw noSlot(slot);
      await faults.setAside(tx, ctx.env.no, slot, action === 'storage.setAside');
      const aside = action === 'storage.setAside' ? 'operator' : null;
      await audit(ctx, tx, action, { aside: found.aside }, { aside }, slot);
    });

export const setAside = set('storage.setAside');
export const takeBack = set('storage.takeBack');
