import { accountRoles, ApiError, roleIncludes, roleMay } from '@parley/protocol';
import type { AccountRole, Invitation as InvitationRecord } from '@parley/protocol';
import { notFound } from '../../../platform/api-errors.ts';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { firstRow } from '../../../platform/postgres/rows.ts';
import { normalEmail } from './accounts.ts';
import type { ControlServices } from '../../context.ts';
import { hashToken, makeToken, tokenForm } from '../tokens.ts';

/**
 * An invitation is a link that works once, within 7 days, for one address. A sign-up by a stranger is an invitation
 * without an organization.
 */

type Tools = Pick<ControlServices, 'clock' | 'ids'>;

const validMs = 7 * 24 * 3_600_000;
const maxPending = 200;

export interface Invitation extends InvitationRecord {
  org: number | null;
  /** The role in the organization that its maker has now; null without a maker, or where the maker has none. */
  madeAs: AccountRole | null;
}

const columns = `i.id, i.org, i.email, i.role, i.created_at AS "createdAt", i.expires_at AS "expiresAt",
  (SELECT email FROM accounts WHERE no = i.invited_by) AS "invitedBy",
  (SELECT role FROM organization_accounts m WHERE m.org = i.org AND m.account = i.invited_by) AS "madeAs"`;

/** The roles that somebody with this role may invite others to. */
const givenBy = (maker: AccountRole | null): AccountRole[] =>
  maker !== null && roleMay(maker, 'people.manage')
    ? accountRoles.filter((role) => roleIncludes(maker, role))
    : [];

/** An invitation counts only as long as its maker may give what it gives. A sign-up has no maker. */
const isCovered = ({ org, role, madeAs }: Invitation): boolean =>
  org === null || givenBy(madeAs).includes(role);

/** Withdraws what an account gave out beyond the role that it has now; null if it has none any more. */
export const withdrawUncovered = (tx: Queryable, org: number, account: number, now: AccountRole | null) =>
  tx.query('DELETE FROM invitations WHERE org = $1 AND invited_by = $2 AND role <> ALL ($3::text[])', [
    org,
    account,
    givenBy(now),
  ]);

/** Inviting an address again replaces its earlier invitation. */
export async function invite(
  tx: Queryable,
  { clock, ids }: Tools,
  fields: { org: number | null; email: string; role: AccountRole; by: number | null },
): Promise<{ invitation: Invitation; token: string }> {
  const { org, role, by } = fields;
  const email = normalEmail(fields.email);
  const now = clock.now();
  if (org !== null) {
    const [row] = await tx.query<{ n: number }>(
      'SELECT count(*)::int AS n FROM invitations WHERE org = $1 AND expires_at > $2 AND email <> $3',
      [org, new Date(now), email],
    );
    if (row!.n >= maxPending)
      throw new ApiError('invalid_request', { message: `There are ${maxPending} open invitations already.` });
  }
  const token = makeToken(ids.random);
  const [invitation] = await tx.query<Invitation>(
    `INSERT INTO invitations AS i (id, org, email, role, token, invited_by, created_at, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
     ON CONFLICT (coalesce(org, 0), email) DO UPDATE SET id = excluded.id, role = excluded.role, token = excluded.token,
       invited_by = excluded.invited_by, created_at = excluded.created_at, expires_at = excluded.expires_at
     RETURNING ${columns}`,
    [ids.make('invitation'), org, email, role, hashToken(token), by, new Date(now), new Date(now + validMs)],
  );
  return { invitation: invitation!, token };
}

export const listInvitations = (db: Queryable, { clock }: Tools, org: number) =>
  db.query<Invitation>(
    `SELECT ${columns} FROM invitations i WHERE org = $1 AND expires_at > $2 ORDER BY created_at DESC, id LIMIT ${maxPending}`,
    [org, new Date(clock.now())],
  );

export async function findInvitation(db: Queryable, org: number, id: string): Promise<Invitation> {
  const [found] = await db.query<Invitation>(
    `SELECT ${columns} FROM invitations i WHERE org = $1 AND id = $2`,
    [org, id],
  );
  if (!found) throw notFound('Invitation');
  return found;
}

export const pendingInvitation = (tx: Queryable, { clock }: Tools, org: number, email: string) =>
  firstRow<Invitation>(
    tx,
    `SELECT ${columns} FROM invitations i WHERE org = $1 AND email = $2 AND expires_at > $3`,
    [org, normalEmail(email), new Date(clock.now())],
  );

export const withdrawInvitation = (tx: Queryable, org: number, id: string) =>
  tx.query('DELETE FROM invitations WHERE org = $1 AND id = $2', [org, id]);

const gone = () =>
  new ApiError('not_found', { message: 'The invitation was used, withdrawn or is older than 7 days.' });

/** Finds the invitation without using it up. */
export async function openInvitation(db: Queryable, { clock }: Tools, token: string): Promise<Invitation> {
  const [found] = tokenForm.test(token)
    ? await db.query<Invitation>(
        `SELECT ${columns} FROM invitations i WHERE token = $1 AND expires_at > $2`,
        [hashToken(token), new Date(clock.now())],
      )
    : [];
  if (!found || !isCovered(found)) throw gone();
  return found;
}

/**
 * Uses the invitation up: of two requests with the same token, the second is refused. The organization must be locked,
 * so that its maker's role does not change meanwhile.
 */
export async function useInvitation(tx: Queryable, invitation: Invitation): Promise<void> {
  const [used] = await tx.query<Invitation>(`DELETE FROM invitations i WHERE id = $1 RETURNING ${columns}`, [
    invitation.id,
  ]);
  if (!used || !isCovered(used)) throw gone();
}
