import { limits } from '@parley/protocol';
import { enqueue } from '../../platform/jobs/sql/jobs.ts';
import type { Job } from '../../platform/jobs/sql/jobs.ts';
import type { Mailer } from '../../platform/mail/mailer.ts';
import type { Db, Queryable, Tx } from '../../platform/postgres/db.ts';
import { ownersOf } from '../accounts/sql/organizations.ts';
import { lockEnvironment, setListeners } from './sql.ts';
import { failingEndpoints, markDisabled } from './sql/health.ts';

/** webhooks#disabled: an endpoint that does not work is disabled, and the owner is told by e-mail. */

const reason = 'failing';

export const mailQueue = { name: 'mail', width: 2 };

interface Notice {
  endpointId: string;
  url: string;
}

/** Disables an endpoint. Its pending deliveries fail when they are due, and can be replayed like any other. */
async function disableEndpoint(tx: Tx, env: number, endpoint: number): Promise<void> {
  await lockEnvironment(tx, env);
  const disabled = await markDisabled(tx, env, endpoint, reason);
  if (!disabled) return;
  await setListeners(tx, env);
  const notice: Notice = { endpointId: disabled.id, url: disabled.url };
  await enqueue(tx, mailQueue, [{ key: env, data: notice }]);
}

/** Disables endpoints that have failed for too long; an idle endpoint has not failed. Returns how many. */
export async function disableFailing(db: Db): Promise<number> {
  const failing = await failingEndpoints(db);
  for (const { no, env } of failing) await db.tx((tx) => disableEndpoint(tx, env, no));
  return failing.length;
}

const mostTries = 8;

/** Sends one notice. Resolves to the time of the next try, or null if it was sent or given up. */
export async function sendNotice(
  db: Queryable,
  mailer: Mailer,
  job: Job,
  now: number,
): Promise<{ runAt: Date | null; error?: unknown }> {
  const notice = job.data as Notice;
  const owners = await ownersOf(db, job.key);
  if (owners.length === 0) return { runAt: null };
  try {
    await mailer.send({
      to: owners.map((o) => o.email),
      subject: `Webhook endpoint ${notice.endpointId} was disabled`,
      text: [
        `The webhook endpoint ${notice.endpointId} (${notice.url}) of ${owners[0]!.env} was disabled.`,
        `No delivery succeeded for ${limits.webhookDisableHours} hours.`,
        '',
        'Enable it again when it works. Events of the last 72 hours can be replayed from its delivery log.',
      ].join('\n'),
    });
    return { runAt: null };
  } catch (error) {
    // Tries follow after 1, 2, 4 … minutes.
    const again = job.claims >= mostTries ? null : new Date(now + 60_000 * 2 ** (job.claims - 1));
    return { runAt: again, error };
  }
}
