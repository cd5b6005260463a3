import { enqueue } from '../../platform/jobs/sql/jobs.ts';
import type { Job } from '../../platform/jobs/sql/jobs.ts';
import { createWorker } from '../../platform/jobs/worker.ts';
import type { Periodic } from '../../platform/flow/periodic.ts';
import type { Mail, Mailer } from '../../platform/mail/mailer.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { Vault } from '../../platform/secrets.ts';
import type { Platform } from '../platform.ts';
import { ownersOf } from './sql/organizations.ts';

/**
 * Mail to account holders and owners. A mail is a job written in the transaction of its cause, so no request waits for the mail
 * server. The job is sealed, because the mail holds a link that opens something. Without CHAT_SMTP_URL no mail is
 * sent, and links must not go to the log: they are shown to the person who asked for them, or come from the command
 * line.
 */

export const mailQueue = { name: 'account_mail', width: 2 };
const sealContext = 'account mail';
const leaseMs = 60_000;
const slots = 4;
/** The last one follows after almost three hours: a mail server may be away for some time. */
const mostTries = 11;

export interface MailQueue {
  /** False if no mail server is configured. */
  readonly enabled: boolean;
  /**
   * @param about number of the account or organization that the mail is about: at most two mails about the same one
   * are sent at once.
   */
  send(tx: Queryable, about: number, mail: Mail): Promise<void>;
  /** The same to the owners of the environment, if there are any; `mail` gets its id. */
  toOwners(tx: Queryable, env: number, mail: (id: string) => Omit<Mail, 'to'>): Promise<void>;
}

export function createMailQueue(vault: Vault, enabled: boolean): MailQueue {
  const send: MailQueue['send'] = async (tx, about, mail) => {
    if (!enabled) return;
    const data = vault.seal(JSON.stringify(mail), sealContext).toString('base64');
    await enqueue(tx, mailQueue, [{ key: about, data }]);
  };
  return {
    enabled,
    send,
    toOwners: async (tx, env, mail) => {
      const [first, ...others] = await ownersOf(tx, env);
      if (first)
        await send(tx, first.org, { to: [first, ...others].map((o) => o.email), ...mail(first.env) });
    },
  };
}

export function createMailWorker({
  db,
  vault,
  clock,
  logger,
  mailer,
}: Pick<Platform, 'db' | 'vault' | 'clock' | 'logger'> & { mailer: Mailer }): Periodic {
  async function run(job: Job): Promise<{ runAt: Date | null }> {
    const sealed = Buffer.from(job.data as string, 'base64');
    try {
      await mailer.send(JSON.parse(vault.open(sealed, sealContext).toString()) as Mail);
      return { runAt: null };
    } catch (error) {
      // Tries follow after 10, 20, 40 … seconds, because somebody is waiting for the mail.
      const again = job.claims >= mostTries ? null : new Date(clock.now() + 10_000 * 2 ** (job.claims - 1));
      logger.warn({ reason: (error as Error).message, again }, 'a mail could not be sent');
      return { runAt: again };
    }
  }
  return createWorker({
    db,
    logger,
    queue: mailQueue.name,
    slots,
    leaseMs,
    run: (jobs) => Promise.resolve(jobs.map(run)),
  });
}
