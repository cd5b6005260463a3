import { ApiError, rateLimits } from '@parley/protocol';
import type { ConversationLog } from '../../log/conversation-log.ts';
import { tell } from '../../log/record.ts';
import { createPeriodic } from '../../platform/flow/periodic.ts';
import { createRemoteHistories } from '../../platform/history/remote.ts';
import type { Tx } from '../../platform/postgres/db.ts';
import { workPool } from '../platform.ts';
import type { Platform } from '../platform.ts';
import type { MailQueue } from '../accounts/mail-queue.ts';
import { addFault } from './sql/faults.ts';
import { createCold } from './cold.ts';
import { createConnections } from './connections.ts';
import type { RetentionMs } from './retention.ts';
import { sinkGauges } from './gauges.ts';
import { createSink } from './sink.ts';
import type { SlotName } from './sql.ts';
import type { SinkNews } from './state.ts';

declare module '../context.ts' {
  interface Services {
    storage: ReturnType<typeof createStorageService>;
  }
}
/** Builds the parts of customers' storage, and gives sinks that have work their turn. */

/** How many environments' sinks run at once in one process. */
const slots = 16;
const pollMs = 250;
const workConnections = 4;

export function createStorageService(
  options: Platform & {
    log: Pick<ConversationLog, 'committed'>;
    retentionMs: RetentionMs;
    mailQueue: MailQueue;
  },
) {
  const { config, db, clock, logger, metrics, retentionMs } = options;
  // What a crash of the store undoes is done again.
  const workDb = workPool(options, workConnections);
  const settings = { allowPrivate: config.allowPrivateTargets, dnsServers: config.dnsServers };
  const inProcess = () => createRemoteHistories({ settings, clock, logger });
  const [histories, trials] = [inProcess(), inProcess()];
  const connections = createConnections({
    ...options,
    histories,
    trials,
    onFault: (env, slot, fault) =>
      void addFault(db, env.no, slot).then(
        (aside) =>
          logger.error(
            { env: env.no, slot, fault, aside },
            aside
              ? 'a history database is set aside: it stopped the process that reads it twice within an hour'
              : 'a history database stopped the process that reads it',
          ),
        (error: unknown) =>
          logger.error({ err: error, env: env.no, slot, fault }, 'a fault of a history database is not kept'),
      ),
  });
  const cold = createCold({ ...options, connections });
  const records = metrics.counter(
    'parley_sink_records_total',
    'Records written to customers’ databases, set aside, and failed writes',
    ['what'],
  );

  async function told(tx: Tx, env: number, news: SinkNews): Promise<void> {
    await tell(options.log, tx, env, news.type, { data: news.data } as never);
    logger.warn({ env, news: news.type, ...news.data }, 'the sink of an environment changed its state');
    await options.mailQueue.toOwners(tx, env, (id) => mailOf(news, id));
  }

  const sink = createSink({
    ...options,
    db: workDb,
    connections,
    alarmingBacklog: config.sinkAlarm,
    tell: told,
    counted: (what, count) => records.inc({ what }, count),
  });

  const gauges = sinkGauges({ db: workDb, logger, metrics, most: config.sinkAlarm });
  const running = new Map<number, Promise<void>>();
  metrics.gauge(
    'parley_sinks_running',
    'Environments whose sink has its turn in this process',
    () => running.size,
  );
  const loop = createPeriodic(pollMs, logger, 'sink', async () => {
    if (running.size >= slots) return null;
    for (const env of await sink.due(slots * 2)) {
      if (running.size >= slots) break;
      if (running.has(env.no)) continue;
      const turn = sink
        .turn(env)
        .catch((error: unknown) => logger.error({ err: error, env: env.no }, 'the turn of a sink failed'))
        .then(() => {
          running.delete(env.no);
          loop.wake();
        });
      running.set(env.no, turn);
    }
    return null;
  });

  return {
    cold,
    connections,
    retentionMs,
    egressIp: config.egressIp ?? null,
    /** Counts a connection to a slot's database that somebody asked for; too many are `rate_limited`. */
    countTry: async (env: number, slot: SlotName): Promise<void> => {
      const [verdict] = await options.limiter.take([
        { key: { what: 'slot', of: `${env}:${slot}` }, limit: rateLimits.slotTries },
      ]);
      if (!verdict!.allowed) throw new ApiError('rate_limited', { retryAfterMs: verdict!.retryAfterMs });
    },
    /** Something was changed that the sink should see now. */
    wake: () => loop.wake(),
    start: () => {
      loop.start();
      gauges.start();
    },
    stop: async () => {
      await Promise.all([loop.stop(), gauges.stop()]);
      await Promise.all(running.values());
    },
    close: async () => {
      await connections.close();
      await Promise.all([histories.close(), trials.close()]);
      await workDb.close();
    },
  };
}

function mailOf(news: SinkNews, env: string): { subject: string; text: string } {
  const what = {
    'sink.degraded': [
      'falls behind',
      'Messages reach your history database more than five minutes late. Nothing is lost: they wait with us.',
    ],
    'sink.failing': [
      'cannot be written',
      'Nothing could be written to your history database for more than an hour. Nothing is lost: messages wait with us until it works again.',
    ],
    'sink.recovered': ['works again', 'Your history database has all messages again.'],
  }[news.type] as [string, string];
  const since = news.type === 'sink.failing' ? `\nSince ${news.data.since}: ${news.data.errorClass}.` : '';
  return { subject: `The history database of ${env} ${what[0]}`, text: `${what[1]}\n${since}` };
}
