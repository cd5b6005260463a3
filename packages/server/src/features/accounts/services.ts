import type { Clock, Ids } from '../../platform/clock.ts';
import type { RateLimiter } from '../../platform/rate-limit/port.ts';
import type { Vault } from '../../platform/secrets.ts';
import type { Mails } from './mail.ts';
import type { Passwords } from './passwords.ts';

/** What the operations on accounts need besides the store. */
export interface AccountServices {
  clock: Clock;
  ids: Ids;
  vault: Vault;
  passwords: Passwords;
  limiter: RateLimiter;
  mails: Mails;
  /** Where browsers reach us, by the setting: the home of passkeys. null: not set. */
  origin: string | null;
  /** Where links lead to: never what a request says, because then a stranger would choose where they lead. */
  linkOrigin(): string;
  /** Strangers may make accounts. */
  signUpOpen: boolean;
  /** Does it after the answer, so that the answer tells nothing of it; what is too much is left undone. */
  later(work: () => Promise<void>): void;
}
