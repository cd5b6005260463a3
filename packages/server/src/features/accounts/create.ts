import { ApiError } from '@parley/protocol';
import { Turns } from '../../platform/flow/turns.ts';
import { createMailer } from '../../platform/mail/mailer.ts';
import type { Platform } from '../platform.ts';
import { createMailQueue, createMailWorker } from './mail-queue.ts';
import { createPasswords } from './passwords.ts';
import type { AccountServices } from './account-services.ts';

/** How many pieces of work given to `later` may wait in this process; further ones are dropped. */
const maxLater = 500;

export function createAccounts(options: Platform) {
  const { config, clock, ids, vault, limiter, logger } = options;
  const mailer = createMailer({ url: config.smtpUrl, from: config.mailFrom }, logger);
  const worker = createMailWorker({ ...options, mailer });
  const turns = new Turns({ slots: 1, waiting: maxLater });
  let waiting: Promise<void> = Promise.resolve();

  const services: AccountServices = {
    clock,
    ids,
    vault,
    limiter,
    passwords: createPasswords(ids.random),
    mailQueue: createMailQueue(vault, config.smtpUrl !== undefined),
    origin: config.origin ?? null,
    linkOrigin: () => config.origin ?? options.listening(),
    signUpOpen: config.signUpOpen,
    later: (work) => {
      const done = turns.run('', 1, work).catch((error: unknown) => {
        const reason = error instanceof ApiError ? error.code : (error as Error).message;
        logger.warn({ reason }, 'something that was left for later was not done');
      });
      waiting = waiting.then(() => done);
    },
  };

  return {
    services,
    /** Resolves when all work given to `later` is done. */
    idle: (): Promise<void> => waiting,
    start: () => {
      if (services.mailQueue.enabled) worker.start();
    },
    stop: async () => {
      await worker.stop();
      mailer.close();
    },
  };
}
