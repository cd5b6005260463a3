import { Type } from '../type.ts';
import { optional } from '../schemas/common.ts';
import { AnalyticsReport, Granularity, UsageReport } from '../schemas/analytics.ts';
import { operation, table } from './define.ts';

const tag = 'Analytics';
const callers = ['server', 'dashboard'] as const;

/** A date, or a timestamp with any offset; its value is checked when it is read. */
const moment = (description: string) => optional(Type.String({ minLength: 1, maxLength: 40, description }));
const range = {
  from: moment(
    'A date (2026-11-01) or a timestamp; the step it lies in is the first. Default: 30 days before `to`',
  ),
  to: moment('A date or a timestamp, exclusive. Default: the end of the present step'),
  granularity: optional(Granularity),
};

export const analyticsOperations = table(
  operation('analytics.get', 'GET /v1/analytics', {
    summary: 'Figures of a range, with a row for every hour or day of it; format=csv gives these rows alone',
    text: 'The answer contains only counts; no message is read. `hour` covers at most 7 days, `day` at most 366; `to` is exclusive, all times are UTC.',
    tag,
    callers,
    permission: 'environments.read',
    query: {
      ...range,
      format: optional(
        Type.Unsafe<'json' | 'csv'>({ type: 'string', enum: ['json', 'csv'], default: 'json' }),
      ),
    },
    response: AnalyticsReport,
    formats: ['application/json', 'text/csv'],
    cost: 8,
  }),

  operation('usage.get', 'GET /v1/usage', {
    summary: 'The figures that count for the plan, for every hour or day of a range',
    text: 'The figures that plans limit: users of the month, most connections at once, messages, requests, deliveries, pushes.',
    tag,
    callers,
    permission: 'environments.read',
    query: range,
    response: UsageReport,
    cost: 2,
  }),
);
