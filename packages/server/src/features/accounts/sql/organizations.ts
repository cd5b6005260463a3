import { ApiError, roleIncludes } from '@parley/protocol';
import type { AccountRole, OrganizationMember } from '@parley/protocol';
import type { Ids } from '../../../platform/clock.ts';
import type { Queryable, Tx } from '../../../platform/postgres/db.ts';
import { oneRow } from '../../../platform/postgres/rows.ts';
import type { Environment, Organization } from '../../context.ts';
import { endEnvironments, environmentColumns, viewEnvironment } from '../../tenancy/sql/environments.ts';
import type { EnvironmentRow } from '../../tenancy/sql/environments.ts';
import { withdrawUncovered } from './invitations.ts';

/** Organizations, and the people in them with their roles (dashboard#roles). */

export interface Person extends Omit<OrganizationMember, 'accountId'> {
  no: number;
  id: string;
}

const maxPeople = 500;
const maxOrganizations = 100;

const columns = 'o.no, o.id, o.name, o.created_at AS "createdAt"';

export const createOrganization = (db: Queryable, ids: Ids, name: string): Promise<Organization> =>
  oneRow(db, `INSERT INTO organizations AS o (id, name) VALUES ($1, $2) RETURNING ${columns}`, [
    ids.make('organization'),
    name,
  ]);

/** The organization with the account's role in it, or undefined if the account does not belong to it. */
export async function findMembership(
  db: Queryable,
  account: number,
  organizationId: string,
): Promise<{ organization: Organization; role: AccountRole } | undefined> {
  const [row] = await db.query<Organization & { role: AccountRole }>(
    `SELECT ${columns}, m.role FROM organizations o JOIN organization_accounts m ON m.org = o.no AND m.account = $1
     WHERE o.id = $2`,
    [account, organizationId],
  );
  if (!row) return undefined;
  const { role, ...organization } = row;
  return { organization, role };
}

/** The environment with the account's role in its organization, or undefined if the account does not belong to that. */
export async function environmentOfAccount(
  db: Queryable,
  account: number,
  environmentId: string,
): Promise<{ env: Environment; role: AccountRole } | undefined> {
  const [row] = await db.query<EnvironmentRow & { role: AccountRole }>(
    `SELECT ${environmentColumns}, m.role FROM environments e
     JOIN organization_accounts m ON m.org = e.org AND m.account = $1 WHERE e.id = $2`,
    [account, environmentId],
  );
  return row && { env: viewEnvironment(row), role: row.role };
}

export const listMemberships = (db: Queryable, account: number) =>
  db.query<Organization & { role: AccountRole }>(
    `SELECT ${columns}, m.role FROM organization_accounts m JOIN organizations o ON o.no = m.org
     WHERE m.account = $1 ORDER BY o.no LIMIT ${maxOrganizations}`,
    [account],
  );

export const findOrganization = (db: Queryable, org: number): Promise<Organization> =>
  oneRow(db, `SELECT ${columns} FROM organizations o WHERE no = $1`, [org]);

export const renameOrganization = (db: Queryable, org: number, name: string) =>
  db.query('UPDATE organizations SET name = $2 WHERE no = $1', [org, name]);

const personColumns = `a.no, a.id, a.email, a.name, m.role, m.joined_at AS "joinedAt",
  a.totp_since IS NOT NULL OR EXISTS (SELECT 1 FROM passkeys p WHERE p.account = a.no) AS "twoFactor"`;

export const listPeople = (db: Queryable, org: number): Promise<Person[]> =>
  db.query<Person>(
    `SELECT ${personColumns} FROM organization_accounts m JOIN accounts a ON a.no = m.account
     WHERE m.org = $1 ORDER BY a.email LIMIT ${maxPeople}`,
    [org],
  );

export async function findPerson(db: Queryable, org: number, accountId: string): Promise<Person> {
  const [person] = await db.query<Person>(
    `SELECT ${personColumns} FROM accounts a JOIN organization_accounts m ON m.account = a.no AND m.org = $1
     WHERE a.id = $2`,
    [org, accountId],
  );
  if (!person) throw new ApiError('not_found', { message: 'No such person in the organization.' });
  return person;
}

/**
 * An account may only give, change or take away roles that its own role includes: admins cannot make, change or
 * remove owners.
 */
export function requireReach(actor: AccountRole, ...roles: AccountRole[]): void {
  if (!roles.every((role) => roleIncludes(actor, role)))
    throw new ApiError('forbidden', { message: 'Only an owner may do this to an owner.' });
}

/**
 * Returns false if the account already belonged to the organization. Throws `invalid_request` beyond `maxPeople` or
 * `maxOrganizations`.
 */
export async function addPerson(tx: Tx, org: number, account: number, role: AccountRole): Promise<boolean> {
  await lockPeople(tx, org);
  const [{ people, organizations } = { people: 0, organizations: 0 }] = await tx.query<{
    people: number;
    organizations: number;
  }>(
    `SELECT (SELECT count(*)::int FROM organization_accounts WHERE org = $1) AS people,
            (SELECT count(*)::int FROM organization_accounts WHERE account = $2) AS organizations`,
    [org, account],
  );
  if (people >= maxPeople || organizations >= maxOrganizations)
    throw new ApiError('invalid_request', {
      message: `An organization has at most ${maxPeople} people, and a person at most ${maxOrganizations} organizations.`,
    });
  const rows = await tx.query(
    `INSERT INTO organization_accounts (org, account, role) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING 1`,
    [org, account, role],
  );
  return rows.length > 0;
}

/** The people must be locked. */
export async function changeRole(tx: Tx, org: number, person: Person, role: AccountRole): Promise<void> {
  await tx.query('UPDATE organization_accounts SET role = $3 WHERE org = $1 AND account = $2', [
    org,
    person.no,
    role,
  ]);
  await requireOwner(tx, org);
  await withdrawUncovered(tx, org, person.no, role);
}

/** The people must be locked. */
export async function removePerson(tx: Tx, org: number, person: Person): Promise<void> {
  await tx.query('DELETE FROM organization_accounts WHERE org = $1 AND account = $2', [org, person.no]);
  await requireOwner(tx, org);
  await withdrawUncovered(tx, org, person.no, null);
}

/**
 * Locks the organization, so that two owners who leave at the same moment do so one after the other, and the second
 * is refused.
 */
export const lockPeople = (tx: Tx, org: number) =>
  tx.query('SELECT 1 FROM organizations WHERE no = $1 FOR UPDATE', [org]);

async function requireOwner(tx: Tx, org: number): Promise<void> {
  const rows = await tx.query(
    `SELECT 1 FROM organization_accounts WHERE org = $1 AND role = 'owner' LIMIT 1`,
    [org],
  );
  if (rows.length === 0)
    throw new ApiError('invalid_request', {
      message: 'The last owner cannot leave, nor become something else.',
    });
}

/**
 * Ends an organization. One transaction cuts everybody off: its environments are suspended, their keys revoked, and
 * nobody belongs to it. `removeEnded` (features/retention) then removes the rows of the environments.
 */
export async function endOrganization(tx: Tx, org: number): Promise<void> {
  await endEnvironments(tx, org);
  await tx.query('DELETE FROM invitations WHERE org = $1', [org]);
  await tx.query('DELETE FROM organization_accounts WHERE org = $1', [org]);
  await tx.query(`UPDATE organizations SET name = '', deleted_at = now() WHERE no = $1`, [org]);
}

/** The addresses of the owners of an environment's organization; the oldest accounts, if there are many. */
export const ownersOf = (db: Queryable, env: number) =>
  db.query<{ email: string; env: string; org: number }>(
    `SELECT a.email, e.id AS env, e.org FROM environments e JOIN organization_accounts o ON o.org = e.org AND o.role = 'owner'
     JOIN accounts a ON a.no = o.account WHERE e.no = $1 ORDER BY a.no LIMIT 20`,
    [env],
  );

/** Creates the first organization with its owner, whose password is set even if the account exists. */
export async function createOwner(
  tx: Queryable,
  ids: Ids,
  email: string,
  passwordHash: string,
): Promise<number> {
  const org = await createOrganization(tx, ids, 'Parley');
  const [account] = await tx.query<{ no: number }>(
    `INSERT INTO accounts (id, email, password_hash) VALUES ($1, $2, $3)
     ON CONFLICT (email) DO UPDATE SET password_hash = excluded.password_hash RETURNING no`,
    [ids.make('account'), email, passwordHash],
  );
  await tx.query(`INSERT INTO organization_accounts (org, account, role) VALUES ($1, $2, 'owner')`, [
    org.no,
    account!.no,
  ]);
  return org.no;
}
