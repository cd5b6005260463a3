import { ApiError } from '@parley/protocol';
import { notFound } from '../../platform/api-errors.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { Environment, Person, Place } from '../context.ts';
import { environmentOfAccount, findMembership } from './sql/organizations.ts';
import { useSession } from './sql/sessions.ts';

/**
 * dashboard#session: finds the dashboard's caller by the session cookie. Nothing is cached, so a session or role that ended is
 * refused from the next request on.
 */

type Role = Required<Pick<Place, 'role'>>;

export type Sessions = ReturnType<typeof createSessions>;

/** Ids have no other characters, and PostgreSQL would refuse some of them (NUL) as text. */
const isId = (value: unknown): value is string => typeof value === 'string' && /^\w{1,100}$/.test(value);

export function createSessions({ db, clock }: { db: Queryable; clock: Clock }) {
  /** Throws `not_found` if the environment belongs to none of the caller's organizations, as if it did not exist. */
  async function environment({ account }: Person, id: unknown): Promise<Role & { env: Environment }> {
    const found = isId(id) ? await environmentOfAccount(db, account.no, id) : undefined;
    if (!found) throw notFound('Environment');
    return found;
  }

  return {
    /** Throws `token_invalid` if the cookie belongs to no session, or to one that has ended. */
    async authenticate(cookie: string): Promise<Person> {
      const found = await useSession(db, clock, cookie);
      if (!found) throw new ApiError('token_invalid', { message: 'The session has ended: sign in again.' });
      const { id, signedInAt, account: no, accountId, email } = found;
      return { account: { no, id: accountId, email }, session: { id, signedInAt } };
    },
    environment,
    /** The organization or the environment of the given id, under the same rule. */
    async organization(
      person: Person,
      { organizationId, environmentId }: { organizationId?: unknown; environmentId?: unknown },
    ): Promise<Place & Role> {
      if (organizationId === undefined) return environment(person, environmentId);
      const found = isId(organizationId)
        ? await findMembership(db, person.account.no, organizationId)
        : undefined;
      if (!found) throw notFound('Organization');
      return found;
    },
  };
}
