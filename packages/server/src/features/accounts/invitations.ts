import { ApiError } from '@parley/protocol';
import type { AccountRole } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import { normalEmail } from './accounts.ts';
import type { AccountServices } from './services.ts';
import { hashToken, makeToken, tokenForm } from './tokens.ts';

/**
 * An invitation is a link that works once, within 7 days, for one address. A sign-up by a stranger is an invitation
 * without an organization.
 */

const validMs = 7 * 24 * 3_600_000;
const maxPending = 200;

export interface Invitation {
  id: string;
  org: number | null;
  email: string;
  role: AccountRole;
  invitedBy: string | null;
  createdAt: string;
  expiresAt: string;
}

const columns = `i.id, i.org, i.email, i.role, i.created_at AS "createdAt", i.expires_at AS "expiresAt",
  (SELECT email FROM accounts WHERE no = i.invited_by) AS "invitedBy"`;

/** Inviting an address again replaces its earlier invitation. */
export async function invite(
  tx: Queryable,
  { clock, ids }: AccountServices,
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
    [
      ...[ids.make('invitation'), org, email, role, hashToken(token), by],
      ...[new Date(now), new Date(now + validMs)],
    ],
  );
  return { invitation: invitation!, token };
}

export const listInvitations = (
  db: Queryable,
  { clock }: AccountServices,
  org: number,
): Promise<Invitation[]> =>
  db.query<Invitation>(
    `SELECT ${columns} FROM invitations i WHERE org = $1 AND expires_at > $2 ORDER BY created_at DESC, id LIMIT ${maxPending}`,
    [org, new Date(clock.now())],
  );

export async function findInvitation(db: Queryable, org: number, id: string): Promise<Invitation> {
  const [found] = await db.query<Invitation>(
    `SELECT ${columns} FROM invitations i WHERE org = $1 AND id = $2`,
    [org, id],
  );
  if (!found) throw new ApiError('not_found', { message: 'There is no such invitation.' });
  return found;
}

export async function withdrawInvitation(tx: Queryable, org: number, id: string): Promise<void> {
  await tx.query('DELETE FROM invitations WHERE org = $1 AND id = $2', [org, id]);
}

const gone = () =>
  new ApiError('not_found', { message: 'The invitation was used, withdrawn or is older than 7 days.' });

/** Finds the invitation without using it up. */
export async function openInvitation(
  db: Queryable,
  { clock }: AccountServices,
  token: string,
): Promise<Invitation> {
  const [found] = tokenForm.test(token)
    ? await db.query<Invitation>(
        `SELECT ${columns} FROM invitations i WHERE token = $1 AND expires_at > $2`,
        [hashToken(token), new Date(clock.now())],
      )
    : [];
  if (!found) throw gone();
  return found;
}

/** Uses the invitation up: of two requests with the same token, the second is refused. */
export async function useInvitation(tx: Queryable, invitation: Invitation): Promise<void> {
  const rows = await tx.query('DELETE FROM invitations WHERE id = $1 RETURNING 1', [invitation.id]);
  if (rows.length === 0) throw gone();
}

export async function removeOldInvitations(db: Queryable, { clock }: AccountServices): Promise<void> {
  await db.query(
    'DELETE FROM invitations WHERE id IN (SELECT id FROM invitations WHERE expires_at <= $1 LIMIT 10000)',
    [new Date(clock.now())],
  );
}
