import { Readable } from 'node:stream';
import { analyticsFigures, limits } from '@parley/protocol';
import type { AnalyticsFigures, AnalyticsReport, Input } from '@parley/protocol';
import { Reply } from '../context.ts';
import type { Context, Operation } from '../context.ts';
import { backlogOf, storageOf } from '../storage/sql.ts';
import { lagSeconds } from '../storage/state.ts';
import { figuresOf, summed } from './figures.ts';
import { piecesOf, readRange, stepMs } from './range.ts';
import type { Range } from './range.ts';
import * as sql from './sql.ts';
import type { Counts } from './sql.ts';

/** analytics#response. */

const iso = (ms: number): string => new Date(ms).toISOString();

function rangeView({ granularity, from, to }: Range, now: number): AnalyticsReport['range'] {
  const kept = Math.floor(now / stepMs.day) - limits.analyticsHoursKeptDays;
  return {
    from: iso(from),
    to: iso(to),
    granularity,
    timezone: 'UTC',
    keptFrom: granularity === 'hour' ? iso(kept * stepMs.day) : null,
  };
}

/** One row for every step, also if nothing was counted in it. */
async function series(ctx: Context, range: Range): Promise<{ t: string; counts: Counts }[]> {
  const rows = await sql.stepCounts(ctx.db, ctx.env.no, range);
  const known = new Map(rows.map(({ at, counts }) => [Date.parse(at), counts]));
  const step = stepMs[range.granularity];
  return Array.from({ length: (range.to - range.from) / step }, (_, i) => {
    const at = range.from + i * step;
    return { t: iso(at), counts: known.get(at) ?? {} };
  });
}

const plan = ({ env, services }: Context): AnalyticsReport['plan'] => {
  const { name, mauLimit, connectionLimit } = services.plans[env.plan];
  return { name, mauLimit, connectionLimit };
};

/** The storage mode and sink, as the storage record shows them. */
async function storageView({ db, env }: Context): Promise<AnalyticsReport['storage']> {
  const { mode, status } = await storageOf(db, env.no);
  if (mode === 'managed') return { mode, sink: { status: 'idle', lagSeconds: 0 } };
  const { oldest, now } = await backlogOf(db, env.no, 1);
  return { mode: 'byo_db', sink: { status, lagSeconds: lagSeconds(oldest, now) } };
}

const monthOf = (ms: number): string => `${iso(ms).slice(0, 7)}-01T00:00:00.000Z`;

export async function analytics(
  ctx: Context,
  input: Input<'analytics.get'>,
): Promise<AnalyticsReport | Reply<Readable>> {
  const { db, services } = ctx;
  const env = ctx.env.no;
  const now = services.clock.now();
  const range = readRange(input, now);
  await services.analytics.catchUp();
  if (input.format === 'csv') return csv(await series(ctx, range));

  const pieces = piecesOf(range);
  // Two queries at a time: a year's report is long, and more would take the connections of others.
  const counted = async () => {
    const steps = await series(ctx, range);
    const activeUsers = await sql.activeUsers(db, env, pieces);
    return {
      steps,
      totals: figuresOf({ ...summed(steps.map(({ counts }) => counts)), activeUsers }),
      months: await sql.monthlyActiveUsers(db, env, now),
      fill: await sql.readFill(db),
      storage: await storageView(ctx),
    };
  };
  const listed = async () => ({
    topConversations: await sql.topConversations(db, env, pieces),
    topSenders: await sql.topSenders(db, env, pieces),
    heatmap: await sql.heatmap(db, env, range),
    live: { connections: await services.sockets.connections(env) },
  });
  const [{ steps, totals, months, fill, storage }, lists] = await Promise.all([counted(), listed()]);
  const { messages, activeUsers } = totals;
  return {
    range: rangeView(range, now),
    totals: {
      ...totals,
      messagesPerActiveUser: activeUsers === 0 ? 0 : Number((messages / activeUsers).toFixed(2)),
      mauThisMonth: months.get(monthOf(now)) ?? 0,
    },
    series: steps.map(({ t, counts }) => ({ t, ...figuresOf(counts) })),
    ...lists,
    plan: plan(ctx),
    storage,
    filling: fill && { progress: fill.total === 0 ? 0 : Math.min(1, fill.done / fill.total) },
  };
}

/** RFC 4180: times and numbers need no quotes. */
function csv(steps: { t: string; counts: Counts }[]): Reply<Readable> {
  const line = (values: (string | number)[]): string => `${values.join(',')}\r\n`;
  const row = (figures: AnalyticsFigures): number[] => analyticsFigures.map((name) => figures[name]);
  const lines = [
    line(['t', ...analyticsFigures]),
    ...steps.map(({ t, counts }) => line([t, ...row(figuresOf(counts))])),
  ];
  return new Reply(200, Readable.from([lines.join('')]), {
    'Content-Type': 'text/csv; charset=utf-8',
    'Content-Disposition': 'attachment; filename="analytics.csv"',
  });
}

export const usage: Operation<Context, 'usage.get'> = async (ctx, input) => {
  const now = ctx.services.clock.now();
  const range = readRange(input, now);
  await ctx.services.analytics.catchUp();
  const months = await sql.monthlyActiveUsers(ctx.db, ctx.env.no, range.from);
  const data = (await series(ctx, range)).map(({ t, counts }) => {
    const { peakConnections, messages, apiRequests, webhookDeliveries, pushSent } = figuresOf(counts);
    return {
      date: range.granularity === 'day' ? t.slice(0, 10) : t,
      mau: months.get(monthOf(Date.parse(t))) ?? 0,
      peakConnections,
      messages,
      apiRequests,
      webhookDeliveries,
      pushSent,
    };
  });
  return { data, plan: plan(ctx), range: rangeView(range, now) };
};
