import type { RateLimiter } from '../../platform/rate-limit/port.ts';
import type { ControlServices } from '../context.ts';
import type { MailQueue } from './mail-queue.ts';
import type { Passwords } from './passwords.ts';

declare module '../context.ts' {
  interface Services {
    accounts: AccountServices;
  }
}

/** What the operations on accounts need besides the database. */
export interface AccountServices extends ControlServices {
  passwords: Passwords;
  limiter: RateLimiter;
  mailQueue: MailQueue;
  /** The address at which browsers reach us (CHAT_ORIGIN), which passkeys belong to; null if it is not set. */
  origin: string | null;
  /**
   * The origin of links in mails. It never comes from a request, because a stranger could then choose where the links
   * lead.
   */
  linkOrigin(): string;
  signUpOpen: boolean;
  /**
   * Runs the work after the answer, so that the time of the answer tells nothing about it. Beyond a bound the work is
   * dropped.
   */
  later(work: () => Promise<void>): void;
}
