import { ApiError, limits } from '@parley/protocol';
import type {
  Hook,
  HookKind,
  HookStats,
  HookTest,
  HookWithSecret,
  Input,
  SetHook,
  Output,
} from '@parley/protocol';
import { notFound } from '../../platform/api-errors.ts';
import type { Queryable, Tx } from '../../platform/postgres/db.ts';
import { difference, record } from '../audit/operations.ts';
import type { Context } from '../context.ts';
import { isString, listPage } from '../pages.ts';
import { nextVersion } from '../tenancy/sql/environments.ts';
import { makeSecret } from '../webhooks/signature.ts';
import { checkedUrl } from '../webhooks/target.ts';
import { readBeforeSend, sampleBeforeSend } from './before-send.ts';
import { HookFailed } from './call.ts';
import { secretContext } from './service.ts';
import * as sql from './sql.ts';
import type { HookRow, HookSettings } from './sql.ts';

/** How hooks are set (hooks.md). */

async function existing(ctx: Context, db: Queryable, kind: HookKind): Promise<HookRow> {
  const row = await sql.findHook(db, ctx.env.no, kind);
  if (!row) throw notFound('Hook');
  return row;
}

const settingsOf = ({
  no: _no,
  createdAt: _made,
  updatedAt: _set,
  failingSince: _failing,
  ...settings
}: HookRow): HookSettings => settings;

/** Makes the hook's new current secret; only this answer ever shows it. */
async function newSecret(ctx: Context, tx: Tx, row: HookRow): Promise<HookWithSecret> {
  const { sealed, shown } = makeSecret(ctx.services, secretContext(row.no));
  await sql.secrets.add(tx, row.no, sealed);
  return { ...sql.viewHook(row), secret: shown };
}

export function set(ctx: Context, input: Input<'hooks.set'>): Promise<SetHook> {
  const wanted: HookSettings = {
    kind: input.kind,
    url: checkedUrl(ctx.services.hooks.outbound, input.url),
    timeoutMs: input.timeoutMs ?? limits.hookTimeoutMs,
    onFailure: input.onFailure ?? 'allow',
    edits: input.edits ?? true,
    servers: input.servers ?? false,
    types: input.types ?? null,
  };
  return ctx.db.tx(async (tx) => {
    await nextVersion(tx, ctx.env.no, 'hooks');
    const before = await sql.findHook(tx, ctx.env.no, input.kind);
    const row = await sql.setHook(tx, ctx.env.no, wanted);
    const changes = difference(before ? settingsOf(before) : {}, settingsOf(row));
    if (changes)
      await record(ctx, tx, {
        action: 'hooks.set',
        target: row.kind,
        ...(before ? changes : { after: wanted }),
      });
    return before ? sql.viewHook(row) : newSecret(ctx, tx, row);
  });
}

export const get = async (ctx: Context, { kind }: Input<'hooks.get'>): Promise<Hook> =>
  sql.viewHook(await existing(ctx, ctx.db, kind));

export const list = (ctx: Context, input: Input<'hooks.list'>): Promise<Output<'hooks.list'>> =>
  listPage(
    input,
    isString,
    async (after, most) => {
      const rows = await sql.findHooks(ctx.db, ctx.env.no);
      return rows.filter(({ kind }) => kind > (after ?? '')).slice(0, most);
    },
    (row) => row.kind,
    sql.viewHook,
  );

export async function remove(ctx: Context, { kind }: Input<'hooks.delete'>): Promise<void> {
  await ctx.db.tx(async (tx) => {
    await nextVersion(tx, ctx.env.no, 'hooks');
    const before = await sql.findHook(tx, ctx.env.no, kind);
    if (!before) return;
    await sql.deleteHook(tx, ctx.env.no, kind);
    await record(ctx, tx, { action: 'hooks.delete', target: kind, before: settingsOf(before) });
  });
}

export const rotateSecret = (ctx: Context, { kind }: Input<'hooks.rotateSecret'>): Promise<HookWithSecret> =>
  ctx.db.tx(async (tx) => {
    await nextVersion(tx, ctx.env.no, 'hooks');
    const row = await existing(ctx, tx, kind);
    await record(ctx, tx, { action: 'hooks.rotateSecret', target: kind });
    return newSecret(ctx, tx, row);
  });

export async function test(ctx: Context, { kind }: Input<'hooks.test'>): Promise<HookTest> {
  const row = await existing(ctx, ctx.db, kind);
  await record(ctx, ctx.db, { action: 'hooks.test', target: kind });
  try {
    const { verdict, status, ms, failure, requestId } = await ctx.services.hooks.test(ctx.env, row, {
      ...sampleBeforeSend,
      read: (answer) => readBeforeSend(answer),
    });
    return { verdict, status, durationMs: ms, error: failure?.message ?? null, requestId };
  } catch (error) {
    // No place was free.
    if (!(error instanceof HookFailed)) throw error;
    throw new ApiError('service_unavailable', { message: `The hook was not asked: ${error.message}.` });
  }
}

const statsMs = 3_600_000;

export async function stats(ctx: Context, { kind }: Input<'hooks.stats'>): Promise<HookStats> {
  await existing(ctx, ctx.db, kind);
  const since = new Date(ctx.services.clock.now() - statsMs).toISOString();
  return { since, ...(await sql.hookStats(ctx.db, ctx.env.no, sampleBeforeSend.type, since)) };
}
