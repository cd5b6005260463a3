import { ApiError, limits } from '@parley/protocol';
import type { Input, Output, SecretKeyWithSecret } from '@parley/protocol';
import { invalid, notFound } from '../../platform/api-errors.ts';
import type { Tx } from '../../platform/postgres/db.ts';
import { difference, record } from '../audit/operations.ts';
import { accountOf } from '../context.ts';
import type { ControlContext, Environment, EnvironmentContext } from '../context.ts';
import { isShortInteger, isString, isTime, listPage } from '../pages.ts';
import { resolveUsers } from '../users/operations.ts';
import { findUser } from '../users/sql.ts';
import { requireConfirmation, requireEnvironment, requireOrganization } from './access.ts';
import { countEnvironments, environmentRecord, insertEnvironment } from './sql/environments.ts';
import * as environments from './sql/environments.ts';
import type { NewEnvironment } from './sql/environments.ts';
import { findKey, insertKey, newestKey, openKey } from './sql/keys.ts';
import * as keys from './sql/keys.ts';
import type { SealedKey } from './sql/keys.ts';
import { mintToken } from './tokens.ts';
import { lockOrganization } from './sql/organizations.ts';

/** Environments, their keys, and tokens for their users (identity#environments). */

/** POST /v1/tokens. A token minted right after a revocation works: `iat` is at least the cut-off. */
export async function createToken(
  ctx: EnvironmentContext,
  input: Input<'tokens.create'>,
): Promise<Output<'tokens.create'>> {
  const { env, services } = ctx;
  const key = await signingKey(ctx);
  await resolveUsers(ctx, ctx.db, [input.userId]);
  const user = await findUser(ctx.db, env.no, input.userId);
  if (!user) throw notFound('User');
  if (user.deactivated_at) throw new ApiError('user_deactivated');
  const now = Math.floor(services.clock.now() / 1000);
  const iat = Math.max(now, user.tokens_from === null ? 0 : Date.parse(user.tokens_from) / 1000);
  const exp = iat + (input.expiresIn ?? limits.tokenSeconds.default);
  const expiresAt = new Date(exp * 1000).toISOString();
  await record(ctx, ctx.db, {
    action: 'tokens.create',
    user: user.no,
    after: { keyId: key.id, expiresAt },
  });
  const secretKey = openKey(services.vault, key.id, key.secret);
  return { token: mintToken(secretKey, key.id, { sub: input.userId, iat, exp }), expiresAt };
}

/** A server signs with the key it authenticated with; the operator, who has none, with the newest key. */
async function signingKey({ caller, db, env }: EnvironmentContext): Promise<SealedKey> {
  if (caller.keyId !== null) {
    const key = await findKey(db, env.no, caller.keyId);
    if (!key) throw new ApiError('key_revoked');
    return key;
  }
  const key = await newestKey(db, env.no);
  if (!key)
    throw new ApiError('invalid_request', { message: 'The environment has no live key: create one first.' });
  return key;
}

export async function listEnvironments(
  ctx: ControlContext,
  input: Input<'environments.list'>,
): Promise<Output<'environments.list'>> {
  const account = accountOf(ctx);
  return listPage(
    input,
    isShortInteger,
    (after, most) => environments.listEnvironments(ctx.db, account, after ?? 0, most),
    (env) => env.no,
    environmentRecord,
  );
}

export const getEnvironment = async (
  ctx: ControlContext,
  { environmentId }: Input<'environments.get'>,
): Promise<Output<'environments.get'>> =>
  environmentRecord(await requireEnvironment(ctx, ctx.db, environmentId));

export async function createEnvironment(
  ctx: ControlContext,
  input: Input<'environments.create'>,
): Promise<Output<'environments.create'>> {
  const { organizationId, plan = 'free', id = ctx.services.ids.make('environment'), ...fields } = input;
  for (const name of ['id', 'plan'] as const) if (input[name] !== undefined) operatorOnly(ctx, name);
  return ctx.db.tx(async (tx) => {
    const org = await requireOrganization(ctx, tx, organizationId);
    await requireRoom(ctx, tx, org);
    const { env, key } = await addEnvironment(ctx, tx, org, { ...fields, id, plan });
    return { ...environmentRecord(env), secretKey: key.secretKey };
  });
}

const maxEnvironments = 20;

/** Locks the organization, so that requests at the same moment neither make more than there is room for nor outlive its end. */
async function requireRoom(ctx: ControlContext, tx: Tx, org: number): Promise<void> {
  if (!(await lockOrganization(tx, org))) throw new ApiError('not_found');
  if (ctx.caller.operator !== null) return;
  if ((await countEnvironments(tx, org)) >= maxEnvironments)
    throw new ApiError('invalid_request', {
      message: `An organization has at most ${maxEnvironments} environments.`,
    });
}

/** Creates an environment with its first key (a new one unless given). */
export async function addEnvironment(
  ctx: ControlContext,
  tx: Tx,
  org: number,
  wanted: NewEnvironment & { secretKey?: string },
): Promise<{ env: Environment; key: SecretKeyWithSecret }> {
  const { secretKey, ...input } = wanted;
  const env = await insertEnvironment(tx, org, input);
  if (!env) throw invalid('id', `There is an environment ${input.id} already.`);
  await record(ctx, tx, {
    where: { env: env.no },
    action: 'environments.create',
    target: env.id,
    after: environmentRecord(env),
  });
  const key = await addKey(ctx, tx, env, {
    name: 'first',
    ...(secretKey === undefined ? {} : { secretKey }),
  });
  return { env, key };
}

export async function updateEnvironment(
  ctx: ControlContext,
  input: Input<'environments.update'>,
): Promise<Output<'environments.update'>> {
  const { environmentId, confirm, ...change } = input;
  const { settings = {}, ...fields } = change;
  for (const name of ['plan', 'local'] as const) if (change[name] !== undefined) operatorOnly(ctx, name);
  if (Object.keys({ ...fields, ...settings }).length === 0)
    throw new ApiError('invalid_request', { message: 'Give a name, a status, a plan or settings.' });
  return ctx.db.tx(async (tx) => {
    const before = await requireEnvironment(ctx, tx, environmentId, true);
    if (change.status === 'suspended') requireConfirmation(ctx.caller, before, confirm);
    const after = await environments.updateEnvironment(tx, before.no, change);
    const changes = difference(flat(before), flat(after));
    if (changes)
      await record(ctx, tx, {
        where: { env: before.no },
        action: 'environments.update',
        target: before.id,
        ...changes,
      });
    return environmentRecord(after);
  });
}

/** Puts the settings beside the other fields, so that the audit log names only those that changed. */
const flat = ({ settings, ...fields }: Environment): object => ({ ...fields, ...settings });

export async function listKeys(
  ctx: EnvironmentContext,
  input: Input<'keys.list'>,
): Promise<Output<'keys.list'>> {
  return listPage(
    input,
    isKeyPlace,
    (after, most) => keys.listKeys(ctx.db, ctx.env.no, after, most),
    (key) => [key.createdAt, key.id],
    (key) => key,
  );
}

const isKeyPlace = (value: unknown): value is [string, string] =>
  Array.isArray(value) && value.length === 2 && isTime(value[0]) && isString(value[1]);

export const createKey = (
  ctx: EnvironmentContext,
  input: Input<'keys.create'>,
): Promise<SecretKeyWithSecret> => ctx.db.tx((tx) => addKey(ctx, tx, ctx.env, { name: input.name ?? '' }));

async function addKey(
  ctx: ControlContext,
  tx: Tx,
  env: Environment,
  wanted: { name: string; secretKey?: string },
): Promise<SecretKeyWithSecret> {
  const key = await insertKey(tx, ctx.services, env.no, wanted);
  const { secretKey: _secret, ...shown } = key;
  await record(ctx, tx, {
    where: { env: env.no },
    action: 'keys.create',
    target: key.id,
    after: shown,
  });
  return key;
}

export async function revokeKey(ctx: EnvironmentContext, { keyId }: Input<'keys.revoke'>): Promise<void> {
  await ctx.db.tx(async (tx) => {
    const found = await keys.revokeKey(tx, ctx.env.no, keyId);
    if (!found) throw new ApiError('not_found', { message: `There is no key ${keyId} in this environment.` });
    if (found.revokedNow)
      await record(ctx, tx, {
        action: 'keys.revoke',
        target: keyId,
        before: { revokedAt: null },
        after: { revokedAt: found.key.revokedAt },
      });
  });
}

function operatorOnly(ctx: ControlContext, param: string): void {
  if (ctx.caller.operator === null)
    throw new ApiError('forbidden', { param, message: `Only the operator sets ${param}.` });
}
