import { ApiError } from '@parley/protocol';
import type { AccountSession, Input, Invitation as InvitationRecord, Output } from '@parley/protocol';
import { invalid } from '../../../platform/api-errors.ts';
import type { Tx } from '../../../platform/postgres/db.ts';
import { record } from '../../audit/operations.ts';
import type { AccountContext, Operation, OrganizationContext, Reply } from '../../context.ts';
import { createAccount, findByEmail, getAccount, normalEmail } from '../sql/accounts.ts';
import type { Account } from '../sql/accounts.ts';
import { recordOwn, signedIn } from '../context.ts';
import * as invitations from '../sql/invitations.ts';
import type { Invitation } from '../sql/invitations.ts';
import { invitationLink, invitationMail, signUpMail } from '../mail-texts.ts';
import {
  addPerson,
  createOrganization,
  findOrganization,
  listPeople,
  lockPeople,
  requireReach,
} from '../sql/organizations.ts';
import { checkNewPassword, ownWords } from '../password-rules.ts';
import { countUse, mailCount, ofAddress } from '../throttle.ts';
import { beginSession, viewSession } from './session.ts';

/** How people get an account: by invitation or, where the operator allows it, by signing up. */

const view = ({ org: _org, madeAs: _madeAs, ...invitation }: Invitation): InvitationRecord => invitation;

export const list = async (ctx: OrganizationContext): Promise<Output<'invitations.list'>> => ({
  data: (await invitations.listInvitations(ctx.db, ctx.services.accounts, ctx.organization.no)).map(view),
});

export const create: Operation<OrganizationContext, 'invitations.create'> = async (ctx, { email, role }) => {
  const { account } = signedIn(ctx);
  const { accounts } = ctx.services;
  const { no: org, name } = ctx.organization;
  requireReach(ctx.role, role);
  return ctx.db.tx(async (tx) => {
    await lockPeople(tx, org);
    const people = await listPeople(tx, org);
    if (people.some((person) => person.email === normalEmail(email)))
      throw new ApiError('already_member', { message: 'This person belongs to the organization already.' });
    const earlier = await invitations.pendingInvitation(tx, accounts, org, email);
    // A new invitation withdraws the earlier one, so the caller must be allowed to do that, too.
    if (earlier) requireReach(ctx.role, earlier.role, earlier.madeAs ?? earlier.role);
    const { invitation, token } = await invitations.invite(tx, accounts, {
      org,
      email,
      role,
      by: account.no,
    });
    await record(ctx, tx, {
      where: { org },
      action: 'invitations.create',
      target: invitation.id,
      after: { email: invitation.email, role },
    });
    const link = invitationLink(accounts.linkOrigin(), token);
    await accounts.mailQueue.send(
      tx,
      account.no,
      invitationMail(invitation.email, name, account.email, link),
    );
    return { ...view(invitation), ...(accounts.mailQueue.enabled ? {} : { link }) };
  });
};

export const remove: Operation<OrganizationContext, 'invitations.delete'> = async (ctx, { invitationId }) => {
  const org = ctx.organization.no;
  await ctx.db.tx(async (tx) => {
    const { email, role } = await invitations.findInvitation(tx, org, invitationId);
    requireReach(ctx.role, role);
    await invitations.withdrawInvitation(tx, org, invitationId);
    await record(ctx, tx, {
      where: { org },
      action: 'invitations.delete',
      target: invitationId,
      before: { email, role },
    });
  });
};

export const preview: Operation<AccountContext, 'invitations.preview'> = async (ctx, { token }) => {
  const invitation = await invitations.openInvitation(ctx.db, ctx.services.accounts, token);
  const { email, role, org } = invitation;
  return {
    email,
    role,
    organization: org === null ? null : (await findOrganization(ctx.db, org)).name,
    hasAccount: (await findByEmail(ctx.db, email)) !== undefined,
  };
};

/** If the invited address has an account, that account accepts; otherwise the person gets one and is signed in. */
export async function accept(
  ctx: AccountContext,
  input: Input<'invitations.accept'>,
): Promise<AccountSession | Reply<AccountSession>> {
  const { accounts } = ctx.services;
  await countUse(accounts.limiter, [ofAddress('accept', ctx.http.address)]);
  const invitation = await invitations.openInvitation(ctx.db, accounts, input.token);
  const existing = await findByEmail(ctx.db, invitation.email);
  if (existing) return acceptAs(ctx, existing, invitation, input);
  const hash = await newPassword(ctx, invitation.email, input);
  return ctx.db.tx(async (tx) => {
    await use(tx, invitation);
    const fields = { email: invitation.email, name: input.name ?? '', passwordHash: hash };
    const no = await createAccount(tx, ctx.services.ids, fields);
    // Another request created an account for this address a moment ago.
    if (no === undefined) throw new ApiError('invalid_credentials');
    const account = await getAccount(tx, no);
    await enter(ctx, tx, account, invitation, input);
    return beginSession(ctx, tx, account);
  });
}

/**
 * The link alone never opens an existing account: the person must already be signed in to it. The session is not
 * renewed, because anybody can invite an address, and an invitation would then count as a recent sign-in of a stolen
 * session.
 */
async function acceptAs(
  ctx: AccountContext,
  account: Account,
  invitation: Invitation,
  input: Input<'invitations.accept'>,
): Promise<AccountSession> {
  const { person } = ctx.caller;
  if (person?.account.no !== account.no)
    throw new ApiError('invalid_credentials', {
      message: `Sign in as ${invitation.email}, then follow the link again.`,
    });
  return ctx.db.tx(async (tx) => {
    await use(tx, invitation);
    await enter(ctx, tx, account, invitation, input);
    return viewSession(tx, account, person.session.signedInAt);
  });
}

async function use(tx: Tx, invitation: Invitation): Promise<void> {
  if (invitation.org !== null) await lockPeople(tx, invitation.org);
  await invitations.useInvitation(tx, invitation);
}

async function enter(
  ctx: AccountContext,
  tx: Tx,
  account: Account,
  invitation: Invitation,
  { organizationName = 'My organization' }: Input<'invitations.accept'>,
): Promise<void> {
  const org = invitation.org ?? (await createOrganization(tx, ctx.services.ids, organizationName)).no;
  if (!(await addPerson(tx, org, account.no, invitation.role))) throw new ApiError('already_member');
  await recordOwn(ctx, tx, account, 'invitations.accept', { after: { role: invitation.role } });
}

function newPassword(
  ctx: AccountContext,
  email: string,
  { password, name = '' }: Input<'invitations.accept'>,
): Promise<string> {
  if (password === undefined) throw invalid('password', 'A new account needs a password.');
  checkNewPassword(password, ownWords(email, name));
  return ctx.services.accounts.passwords.hash(password);
}

/** The answer is the same whether or not the address has an account; an address that has one gets no mail. */
export const signUp: Operation<AccountContext, 'accounts.signUp'> = async (ctx, { email }) => {
  const { accounts } = ctx.services;
  if (!accounts.signUpOpen)
    throw new ApiError('forbidden', { message: 'Sign-up is not open: ask for an invitation.' });
  await countUse(accounts.limiter, [
    ofAddress('sign-up', ctx.http.address),
    mailCount(accounts.vault, 'sign-up', email),
  ]);
  accounts.later(async () => {
    if (await findByEmail(ctx.db, email)) return;
    await ctx.db.tx(async (tx) => {
      const wanted = { org: null, email, role: 'owner' as const, by: null };
      const { token } = await invitations.invite(tx, accounts, wanted);
      const link = invitationLink(accounts.linkOrigin(), token);
      await accounts.mailQueue.send(tx, 0, signUpMail(normalEmail(email), link));
    });
  });
  return {};
};
