import type { Logger } from '../../platform/logging.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { createPeriodic } from '../../platform/flow/periodic.ts';
import type { Periodic } from '../../platform/flow/periodic.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { SinkStatus } from './sql.ts';
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
  let lag = 0;
  let backlog = 0;
  let refused = 0;
  const sinks: Record<SinkStatus, number> = { healthy: 0, degraded: 0, failing: 0 };
  metrics.gauge(
    'parley_sink_lag_seconds',
    'Age of the oldest change that is not in its customer’s database, over all environments',
    () => lag,
  );
  metrics.gauge('parley_sink_backlog', 'Changes that wait for customers’ databases', () => backlog);
  metrics.gauge('parley_sink_set_aside', 'Records that customers’ databases refuse', () => refused);
  for (const status of ['healthy', 'degraded', 'failing'] as const)
    metrics.gauge(`parley_sinks_${status}`, `Environments whose sink is ${status}`, () => sinks[status]);

  return createPeriodic(lookMs, logger, 'state of the sinks', async () => {
    const rows = await allSinks(db, options.most);
    lag = Math.max(
      0,
      ...rows.map((row) =>
        lagSeconds(row.oldest === null ? null : Date.parse(row.oldest), Date.parse(row.now)),
      ),
    );
    backlog = rows.reduce((sum, row) => sum + row.backlog, 0);
    refused = rows.reduce((sum, row) => sum + row.refused, 0);
    for (const status of ['healthy', 'degraded', 'failing'] as const)
      sinks[status] = rows.filter((row) => row.status === status).length;
  });
}
