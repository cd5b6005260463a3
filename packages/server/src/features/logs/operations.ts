import { idTime } from '@parley/protocol';
import type { ActivityStep, Input, LogEntry, Output } from '@parley/protocol';
import type { Context, Operation } from '../context.ts';
import { cut, decodeCursor, encodeCursor, isTimedPlace, pageLimit } from '../pages.ts';
import { moment } from '../time.ts';
import { userNumbers } from '../users/sql.ts';
import { stepMs } from './recorder.ts';
import * as sql from './sql.ts';
import type { Asked, Place, Row } from './sql.ts';

/** dashboard#logs: what happened in an environment, and its present health. */

const entry = ({ no, ...rest }: Row): LogEntry => ({ id: String(no), ...rest });
const cursorOf = ({ at, no }: Place): string => encodeCursor([at, no]);

export const list: Operation<Context, 'logs.list'> = async (ctx, input) => {
  const limit = pageLimit(input.limit);
  const asked = await question(ctx, input);
  if (asked === null) return { data: [], nextCursor: null };
  const rows = await sql.listRows(ctx.db, asked, limit + 1);
  const { page, more } = cut(rows, limit);
  if (more) return { data: page.map(entry), nextCursor: cursorOf(page.at(-1)!) };
  const last = asked.where.length === 0 ? undefined : await sql.lastLooked(ctx.db, asked);
  return { data: page.map(entry), nextCursor: last ? cursorOf(last) : null };
};

/** Returns null if nothing can match. */
async function question(ctx: Context, input: Input<'logs.list'>): Promise<Asked | null> {
  const before = input.cursor === undefined ? null : decodeCursor(input.cursor, isTimedPlace);
  const asked: Asked = {
    env: ctx.env.no,
    before: before && { at: before[0], no: before[1] },
    from: input.from === undefined ? null : moment('from', input.from),
    to: input.to === undefined ? null : moment('to', input.to),
    failed: false,
    user: null,
    requestId: null,
    where: [],
  };
  if (input.requestId !== undefined) {
    const at = idTime(input.requestId);
    if (at === null) return null;
    asked.requestId = { id: input.requestId, at };
  }
  if (input.userId !== undefined) {
    const found = (await userNumbers(ctx.db, ctx.env.no, [input.userId])).get(input.userId);
    if (found === undefined) return null;
    asked.user = found;
  }
  const { status } = input;
  if (status !== undefined) {
    const first = Number(status[0]) * 100;
    // Failed rows have an index of their own.
    asked.failed = status === 'error' || first >= 400;
    if (status.endsWith('xx')) asked.where.push(['l.status >= $', first], ['l.status < $', first + 100]);
    else if (status !== 'error') asked.where.push(['l.status = $', Number(status)]);
  }
  if (input.code !== undefined) {
    asked.failed = true;
    asked.where.push(['l.code = $', input.code]);
  }
  if (input.operation !== undefined) asked.where.push(['l.operation = $', input.operation]);
  if (input.kind !== undefined) asked.where.push(['l.kind = $', input.kind]);
  if (input.caller === 'app') asked.where.push(['l.caller IS DISTINCT FROM $', 'dashboard']);
  else if (input.caller !== undefined) asked.where.push(['l.caller = $', input.caller]);
  return asked;
}

const minuteMs = 60_000;
const minutes = 60;

export async function overview(ctx: Context): Promise<Output<'overview.get'>> {
  const { db, env, services } = ctx;
  const now = services.clock.now();
  const first = Math.floor(now / minuteMs) * minuteMs - (minutes - 1) * minuteMs;
  // The last step is not complete yet, and counts are written every few seconds.
  const until = Math.floor(now / stepMs) * stepMs - stepMs;
  const [connections, series, last, webhooks, has] = await Promise.all([
    services.sockets.connections(env.no),
    sql.activityByMinute(db, env.no, new Date(first)),
    sql.activityBetween(db, env.no, new Date(until - minuteMs), new Date(until)),
    sql.webhookHealth(db, env.no),
    sql.beginnings(db, env.no),
  ]);
  const whole = everyMinute(series, first);
  const sum = (name: 'webhooksSucceeded' | 'webhooksFailed'): number =>
    whole.reduce((total, step) => total + step[name], 0);
  return {
    at: new Date(now).toISOString(),
    connections,
    messagesPerSecond: perSecond(last.messages),
    requestsPerSecond: perSecond(last.requests),
    errorsPerSecond: perSecond(last.errors),
    series: whole,
    webhooks: { ...webhooks, succeeded: sum('webhooksSucceeded'), failed: sum('webhooksFailed') },
    has: { ...has, webhooks: webhooks.endpoints > 0 },
  };
}

const perSecond = (inAMinute: number): number => Math.round((inAMinute / 60) * 100) / 100;

function everyMinute(found: ActivityStep[], first: number): ActivityStep[] {
  const by = new Map(found.map((step) => [Date.parse(step.t), step]));
  return Array.from({ length: minutes }, (_, i) => {
    const at = first + i * minuteMs;
    return (
      by.get(at) ?? {
        t: new Date(at).toISOString(),
        messages: 0,
        requests: 0,
        errors: 0,
        serverErrors: 0,
        socketErrors: 0,
        webhooksSucceeded: 0,
        webhooksFailed: 0,
      }
    );
  });
}
