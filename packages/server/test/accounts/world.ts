import { randomBytes } from 'node:crypto';
import { createAccount, findByEmail, getAccount } from '../../src/features/accounts/sql/accounts.ts';
import type { Account } from '../../src/features/accounts/sql/accounts.ts';
import type { Passwords } from '../../src/features/accounts/passwords.ts';
import type { AccountServices } from '../../src/features/accounts/account-services.ts';
import { createIds } from '../../src/platform/clock.ts';
import { PgDb } from '../../src/platform/postgres/db.ts';
import { migrate } from '../../src/platform/postgres/migrate.ts';
import { memoryRateLimiter } from '../../src/platform/rate-limit/memory.ts';
import { createVault } from '../../src/platform/secrets.ts';
import { outsidePostgres } from '../core/tools.ts';

/** The account features on a store of their own, at a time that the test sets. */
export interface World {
  db: PgDb;
  services: AccountServices;
  time: { at: number };
  /** Mails that would have been sent. */
  mails: { to: string[]; subject: string; text: string }[];
  account(options?: { email?: string; password?: string }): Promise<Account>;
  close(): Promise<void>;
}

export const origin = { address: '192.0.2.1', userAgent: 'test' };
export const goodPassword = 'drei Kühe im Regen';

/** Real hashes cost a tenth of a second each, and passwords.test.ts has them. */
const cheapPasswords: Passwords = {
  hash: (password) => Promise.resolve(`cheap ${password}`),
  verify: (password, stored) => Promise.resolve({ matches: stored === `cheap ${password}`, outdated: false }),
};

export async function createWorld(): Promise<World> {
  const postgres = await outsidePostgres();
  await migrate(postgres.connection);
  const db = new PgDb(postgres.connection, { max: 4, onError: () => undefined });
  const time = { at: Date.parse('2026-11-15T12:00:00Z') };
  const clock = { now: () => time.at, monotonic: () => time.at };
  const mails: World['mails'] = [];
  const services: AccountServices = {
    clock,
    ids: createIds(clock, randomBytes),
    vault: createVault(randomBytes(32)),
    passwords: cheapPasswords,
    limiter: memoryRateLimiter(clock),
    mailQueue: {
      enabled: true,
      send: (_tx, _about, mail) => {
        mails.push(mail);
        return Promise.resolve();
      },
      toOwners: () => Promise.resolve(),
    },
    origin: null,
    linkOrigin: () => 'https://chat.example.com',
    signUpOpen: false,
    later: (work) => void work(),
  };
  let count = 0;
  return {
    db,
    services,
    time,
    mails,
    async account({ email = `person${++count}@example.com`, password = goodPassword } = {}) {
      const passwordHash = await services.passwords.hash(password);
      const no = await createAccount(db, services.ids, { email, name: '', passwordHash });
      return no === undefined ? (await findByEmail(db, email))! : getAccount(db, no);
    },
    async close() {
      await db.close();
      await postgres.dispose();
    },
  };
}
