import { isDeepStrictEqual } from 'node:util';
import type { Environment } from '../../features/context.ts';
import { revokedSessions, termsOf } from '../../features/presence/sql.ts';
import type { Db } from '../../platform/postgres/db.ts';
import type { Session } from './session.ts';

/**
 * Looks every second for keys that were revoked, and for environments that were suspended or take no unsigned tokens any more, with one row per key in use. After the bus was unreachable, every user is checked once.
 */
export class CredentialRecheck {
  readonly #db: Db;
  readonly #sessions: ReadonlyMap<string, Session>;
  #checking = false;
  #everyUser = false;

  constructor(db: Db, sessions: ReadonlyMap<string, Session>) {
    this.#db = db;
    this.#sessions = sessions;
  }

  checkEveryUser(): void {
    this.#everyUser = true;
    void this.check();
  }

  async check(): Promise<void> {
    if (this.#checking || this.#sessions.size === 0) return;
    this.#checking = true;
    const everyUser = this.#everyUser;
    this.#everyUser = false;
    try {
      const groups = Map.groupBy(
        this.#sessions.values(),
        ({ user, keyId, tokenIssuedAt }) =>
          `${user!.env} ${keyId} ${everyUser ? `${user!.no} ${tokenIssuedAt}` : ''}`,
      );
      const all = [...groups.values()];
      const rows = await revokedSessions(
        this.#db,
        all.map(([s]) => ({
          env: s!.user!.env,
          user: everyUser ? s!.user!.no : null,
          keyId: s!.keyId,
          issuedAt: s!.tokenIssuedAt,
        })),
      );
      await this.#renewTerms();
      for (const row of rows)
        for (const session of all[row.ord - 1]!) session.close(row.closed || row.deactivated ? 4003 : 4001);
    } catch {
      // The store is unreachable; the next look is in a second.
      this.#everyUser ||= everyUser;
    } finally {
      this.#checking = false;
    }
  }

  /** A change of plan, or of the features that are off, also applies to sockets that are already open. */
  async #renewTerms(): Promise<void> {
    const known = new Map<number, Environment>();
    for (const { env } of this.#sessions.values()) if (env) known.set(env.no, env);
    const terms = await termsOf(this.#db, [...known.keys()]);
    const changed = new Map<number, Environment>();
    for (const session of this.#sessions.values()) {
      const { env } = session;
      const now = env && terms.get(env.no);
      if (!now) continue;
      const { plan, words, hooks, settings } = env;
      if (isDeepStrictEqual(now, { plan, words, hooks, disabledFeatures: settings.disabledFeatures }))
        continue;
      const { disabledFeatures, ...others } = now;
      const renewed = changed.get(env.no) ?? {
        ...env,
        ...others,
        settings: { ...settings, disabledFeatures },
      };
      changed.set(env.no, renewed);
      session.env = renewed;
    }
  }
}
