import { ApiError } from '@parley/protocol';
import { listReports } from '../../log/sql/consumers.ts';
import type { ConversationLog } from '../../log/conversation-log.ts';
import type { Ids } from '../../platform/clock.ts';
import type { Consumer } from '../../platform/jobs/outbox.ts';
import { enqueue } from '../../platform/jobs/sql/jobs.ts';
import type { Job } from '../../platform/jobs/sql/jobs.ts';
import { createWorker } from '../../platform/jobs/worker.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Db, Tx } from '../../platform/postgres/db.ts';
import type { Vault } from '../../platform/secrets.ts';
import type { Analytics } from '../analytics/service.ts';
import { file } from './file.ts';
import type { Said } from './snapshot.ts';
import { conversationId, reporters } from './sql.ts';

/**
 * Makes the reports of word lists. The commit of a message that a list wants reported leaves a row in the outbox with what
 * was said; it becomes a job in the lane of its environment, and the job ends in the transaction that writes the report. So
 * a report is made exactly once, whichever process ends when.
 */

/** A lane, which is an environment, makes one report at a time. */
const queue = { name: 'list_reports', width: 1 };
const slots = 4;
/** Milliseconds. */
const leaseMs = 8_000;
/** A report that could not be made so often is given up, and logged. */
const mostClaims = 20;

interface Listed {
  conv: number;
  seq: number;
  sender: number | null;
  /** JSON, as it came from the outbox. */
  said: string;
}

interface Outcome extends Listed {
  runAt: null;
  env: number;
  claims: number;
}

export function createReportService(options: {
  db: Db;
  ids: Ids;
  vault: Vault;
  log: ConversationLog;
  analytics: Analytics;
  logger: Logger;
}) {
  const { db, logger } = options;

  async function report(tx: Tx, { env, conv, seq, sender, claims, ...listed }: Outcome): Promise<void> {
    const { messageId, ...said } = JSON.parse(listed.said) as Said & { messageId: string };
    if (claims > mostClaims) return logger.error({ env, messageId }, 'the report of a word list is lost');
    try {
      await file({ services: options }, tx, env, {
        target: { kind: 'message', target: conv, seq, messageId, user: sender },
        said,
        conversationId: (await conversationId(tx, env, conv)) ?? null,
        reporter: reporters.list,
        reason: 'list',
        note: null,
      });
    } catch (error) {
      // It was deleted for good, or its author erased.
      if (!(error instanceof ApiError && error.code === 'not_found')) throw error;
    }
  }

  const worker = createWorker<Outcome>({
    db,
    logger,
    queue: queue.name,
    slots,
    leaseMs,
    run: (jobs) => Promise.resolve(jobs.map((job) => Promise.resolve(outcomeOf(job)))),
    record: async (tx, outcomes) => {
      for (const outcome of outcomes) await report(tx, outcome);
    },
  });
  const consumer: Consumer = {
    name: 'reports of word lists',
    bit: listReports,
    db,
    take: (tx, rows) =>
      enqueue(
        tx,
        queue,
        rows.map(({ env, conv, seq, actor, data }) => ({
          key: env,
          data: { conv, seq, sender: actor, said: data },
        })),
      ),
    taken: () => worker.wake(),
  };
  return {
    consumer,
    /** Starts making reports, in processes with the role worker, once the store is ready. */
    start: () => worker.start(),
    stop: () => worker.stop(),
  };
}

const outcomeOf = ({ key, data, claims }: Job): Outcome => ({
  runAt: null,
  env: key,
  claims,
  ...(data as Listed),
});
