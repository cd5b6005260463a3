import type { Logger } from '../../platform/logging.ts';
import type { Db } from '../../platform/postgres/db.ts';
import type { MailQueue } from '../accounts/mail-queue.ts';
import type { Plans } from './table.ts';
import { noteCeilings } from './sql.ts';

/** Owners get a mail when 80 and when 100 percent of a ceiling are used, each once a month. */

const names = { users: 'monthly active users', connections: 'connections' } as const;
const then = {
  users:
    'Users who were active in this month go on; others are refused (429 plan_limit_reached) until the month ends.',
  connections: 'Further sockets are closed with 4008 until others close.',
} as const;

export async function tellOwners(
  db: Db,
  plans: Plans,
  mailQueue: MailQueue,
  logger: Logger,
): Promise<number> {
  const table = Object.values(plans);
  return db.tx(async (tx) => {
    const notices = await noteCeilings(tx, table);
    for (const notice of notices) {
      const { env, id, plan, what, percent, used, most } = notice;
      const text = `${id} uses ${used} of the ${most} ${names[what]} of its plan ${plan}.`;
      logger.warn({ env: id, what, percent, used, most }, 'the ceiling of a plan is near');
      await mailQueue.toOwners(tx, env, () => ({
        subject: `${id}: ${percent} percent of its ${names[what]} are used`,
        text: [
          text,
          percent >= 100 ? then[what] : `At 100 percent: ${then[what]}`,
          '',
          'The operator of the service can change the plan: npm run parley -- env set <env id> --plan <plan>',
        ].join('\n'),
      }));
    }
    return notices.length;
  });
}
