import type { Logger } from '../../platform/logging.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { createPeriodic } from '../../platform/flow/periodic.ts';
import type { Periodic } from '../../platform/flow/periodic.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { lagSeconds } from './state.ts';
import { allSinks } from './sql/sink.ts';

/**
 * The state of all sinks for /metrics. Every worker reports the same, because sinks that no process works on must
 * show too.
 */

const lookMs = 10_000;

export function sinkGauges(options: {
  db: Queryable;
  logger: Logger;
  metrics: Metrics;
  /** Records of one environment are counted up to this many. */
  most: number;
}): Periodic {
  const { db, logger, metrics } = options;
  let sinks: Awaited<ReturnType<typeof allSinks>> = [];
  const sum = (name: 'backlog' | 'refused'): number => sinks.reduce((total, sink) => total + sink[name], 0);
  metrics.gauge(
    'parley_sink_lag_seconds',
    'Age of the oldest change that is not in its customer’s database, over all environments',
    () => Math.max(0, ...sinks.map(({ oldest, now }) => lagSeconds(oldest, now))),
  );
  metrics.gauge('parley_sink_backlog', 'Changes that wait for customers’ databases', () => sum('backlog'));
  metrics.gauge('parley_sink_set_aside', 'Records that customers’ databases refuse', () => sum('refused'));
  for (const status of ['healthy', 'degraded', 'failing'] as const)
    metrics.gauge(
      `parley_sinks_${status}`,
      `Environments whose sink is ${status}`,
      () => sinks.filter((sink) => sink.status === status).length,
    );

  return createPeriodic(lookMs, logger, 'state of the sinks', async () => {
    sinks = await allSinks(db, options.most);
  });
}
