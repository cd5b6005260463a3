import { limits } from '@parley/protocol';
import type { Logger } from '../../platform/logging.ts';
import type { Db, Tx } from '../../platform/postgres/db.ts';
import type { MailQueue } from '../accounts/mail-queue.ts';
import { lockEnvironment, setListeners } from './sql.ts';
import { failingEndpoints, markDisabled } from './sql/deliveries.ts';

/** webhooks#disabled: an endpoint that does not work is disabled, and the owner is told by e-mail. */

const reason = 'failing';

/** Disables endpoints that have failed for too long; an idle endpoint has not failed. */
export async function disableFailing(db: Db, mailQueue: MailQueue, logger: Logger): Promise<void> {
  for (const { no, env } of await failingEndpoints(db))
    await db.tx((tx) => disableEndpoint(tx, mailQueue, logger, env, no));
}

/** Disables an endpoint. Its pending deliveries fail when they are due, and can be replayed like any other. */
async function disableEndpoint(
  tx: Tx,
  mailQueue: MailQueue,
  logger: Logger,
  env: number,
  endpoint: number,
): Promise<void> {
  await lockEnvironment(tx, env);
  const disabled = await markDisabled(tx, env, endpoint, reason);
  if (!disabled) return;
  const { id, url } = disabled;
  await setListeners(tx, env);
  // Not its address: that may hold a token.
  logger.warn({ env, endpoint: id }, 'a webhook endpoint was disabled');
  await mailQueue.toOwners(tx, env, (environment) => ({
    subject: `Webhook endpoint ${id} was disabled`,
    text: [
      `The webhook endpoint ${id} (${url}) of ${environment} was disabled.`,
      `No delivery succeeded for ${limits.webhookDisableHours} hours.`,
      '',
      'Enable it again when it works. Events of the last 72 hours can be replayed from its delivery log.',
    ].join('\n'),
  }));
}
