import type { AccountRole, OrganizationMember, Output } from '@parley/protocol';
import { invalid } from '../../../platform/api-errors.ts';
import type { Tx } from '../../../platform/postgres/db.ts';
import { difference, record } from '../../audit/operations.ts';
import type { Operation, OrganizationContext } from '../../context.ts';
import { environmentIds } from '../../tenancy/sql/environments.ts';
import { signedIn } from '../context.ts';
import * as organizations from '../sql/organizations.ts';
import type { Person } from '../sql/organizations.ts';

/** Organizations and their people. The operation table says which role may call what; this file says who may change whom. */

const view = ({ no: _no, id, ...person }: Person): OrganizationMember => ({ accountId: id, ...person });

export const get = (ctx: OrganizationContext): Promise<Output<'organizations.get'>> => {
  const { id, name, createdAt } = ctx.organization;
  return Promise.resolve({ id, name, createdAt, role: ctx.role });
};

export const update: Operation<OrganizationContext, 'organizations.update'> = async (ctx, { name }) => {
  const { no, id, createdAt } = ctx.organization;
  await ctx.db.tx(async (tx) => {
    await organizations.renameOrganization(tx, no, name);
    const changes = difference({ name: ctx.organization.name }, { name });
    if (changes)
      await record(ctx, tx, { where: { org: no }, action: 'organizations.update', target: id, ...changes });
  });
  return { id, name, createdAt, role: ctx.role };
};

/** The caller's role, once nobody else can change roles: another may have changed one a moment ago. */
async function lockedRole(ctx: OrganizationContext, tx: Tx): Promise<AccountRole> {
  await organizations.lockPeople(tx, ctx.organization.no);
  return (await organizations.findPerson(tx, ctx.organization.no, signedIn(ctx).account.id)).role;
}

/** The name must be typed again, because this cannot be undone. */
export const remove: Operation<OrganizationContext, 'organizations.delete'> = async (ctx, { name }) => {
  const { no, id } = ctx.organization;
  await ctx.db.tx(async (tx) => {
    organizations.requireReach(await lockedRole(ctx, tx), 'owner');
    const organization = await organizations.findOrganization(tx, no);
    if (name !== organization.name) throw invalid('name', '`name` is not the name of the organization.');
    await record(ctx, tx, {
      where: { org: no },
      action: 'organizations.delete',
      target: id,
      before: { name, environments: await environmentIds(tx, no) },
    });
    await organizations.endOrganization(tx, no);
  });
};

export const listMembers = async (
  ctx: OrganizationContext,
): Promise<Output<'organizations.listMembers'>> => ({
  data: (await organizations.listPeople(ctx.db, ctx.organization.no)).map(view),
});

export const updateMember: Operation<OrganizationContext, 'organizations.updateMember'> = async (
  ctx,
  { accountId, role },
) => {
  const org = ctx.organization.no;
  return ctx.db.tx(async (tx) => {
    const own = await lockedRole(ctx, tx);
    const person = await organizations.findPerson(tx, org, accountId);
    organizations.requireReach(own, person.role, role);
    await organizations.changeRole(tx, org, person, role);
    const changes = difference({ role: person.role }, { role });
    if (changes)
      await record(ctx, tx, {
        where: { org },
        action: 'organizations.updateMember',
        target: accountId,
        ...changes,
      });
    return view({ ...person, role });
  });
};

export const removeMember: Operation<OrganizationContext, 'organizations.removeMember'> = async (
  ctx,
  { accountId },
) => {
  await end(ctx, 'organizations.removeMember', accountId);
};

export const leave = (ctx: OrganizationContext): Promise<void> =>
  end(ctx, 'organizations.leave', signedIn(ctx).account.id);

async function end(
  ctx: OrganizationContext,
  action: 'organizations.removeMember' | 'organizations.leave',
  target: string,
): Promise<void> {
  const org = ctx.organization.no;
  await ctx.db.tx(async (tx) => {
    const own = await lockedRole(ctx, tx);
    const person = await organizations.findPerson(tx, org, target);
    if (action !== 'organizations.leave') organizations.requireReach(own, person.role);
    await organizations.removePerson(tx, org, person);
    const before = { email: person.email, role: person.role };
    await record(ctx, tx, { where: { org }, action, target, before });
  });
}
