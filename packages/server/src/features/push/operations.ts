import { ApiError, limits } from '@parley/protocol';
import type { Input, Output, PushCredentialsView, PushDevice } from '@parley/protocol';
import { OutboundRefused } from '../../platform/outbound/outbound.ts';
import { parsePushCredentials, PushCredentialsError } from '../../platform/push/credentials.ts';
import type { PushCredentials } from '../../platform/push/credentials.ts';
import type { PushProviderName } from '../../platform/push/port.ts';
import { parseSubscription } from '../../platform/push/webpush-encryption.ts';
import { record } from '../audit/operations.ts';
import { Reply } from '../context.ts';
import type { Context, EnvironmentContext } from '../context.ts';
import * as credentials from './credentials.ts';
import * as sql from './sql.ts';

/** DECISIONS, Webhooks, push: a device is known by its token, which belongs to the user who registered it last. */

/** In a path each character may take several bytes, and a request's head has 16 KB. */
const mostEncoded = 12_288;

const bad = (message: string) => new ApiError('invalid_request', { param: 'token', message });

const self = (ctx: Context): number => {
  if (ctx.caller.kind !== 'client') throw new ApiError('forbidden');
  return ctx.caller.user.no;
};

function checkToken(ctx: Context, { provider, token }: Input<'push.register'>): void {
  if (encodeURIComponent(token).length > mostEncoded) throw bad('token is too long.');
  if (provider !== 'webpush') return;
  const subscription = parseSubscription(token);
  if (!subscription) throw bad('token must be the JSON of a PushSubscription.');
  try {
    ctx.services.webhooks.outbound.checkUrl(subscription.endpoint);
  } catch (error) {
    if (error instanceof OutboundRefused) throw bad(`The endpoint is refused: ${error.message}.`);
    throw error;
  }
}

export async function register(
  ctx: Context,
  input: Input<'push.register'>,
): Promise<PushDevice | Reply<PushDevice>> {
  const user = self(ctx);
  const env = ctx.env.no;
  checkToken(ctx, input);
  return ctx.db.tx(async (tx) => {
    const saved = await sql.saveDevice(tx, env, user, input.provider, input.token);
    // Erased since the request was authenticated.
    if (!saved) throw new ApiError('token_invalid');
    const { known, ...device } = saved;
    if (!known) await sql.dropOldDevices(tx, env, user, limits.pushDevicesPerUser);
    await sql.listenForPush(tx, env);
    return known ? new Reply(200, device) : device;
  });
}

export async function unregister(ctx: Context, input: Input<'push.unregister'>): Promise<void> {
  if (!(await sql.dropDevice(ctx.db, ctx.env.no, self(ctx), input.token)))
    throw new ApiError('not_found', { message: 'There is no such device.' });
}

export const listCredentials = async (ctx: EnvironmentContext): Promise<Output<'push.listCredentials'>> => ({
  data: await credentials.listCredentials(ctx.db, ctx.env.no),
});

export async function setCredentials(
  ctx: EnvironmentContext,
  input: Input<'push.setCredentials'>,
): Promise<PushCredentialsView> {
  const { provider } = input;
  const parsed = parsedCredentials(provider, input.credentials);
  const { env, services } = ctx;
  return ctx.db.tx(async (tx) => {
    const before = (await credentials.listCredentials(tx, env.no)).find((one) => one.provider === provider);
    const after = await credentials.saveCredentials(tx, services.vault, env.no, provider, parsed);
    await record(ctx, tx, {
      where: { env: env.no },
      action: 'push.setCredentials',
      target: provider,
      before: before ?? null,
      after,
    });
    return after;
  });
}

/** The message names the field and what it should be, never what it is. */
function parsedCredentials(provider: PushProviderName, input: unknown): PushCredentials {
  try {
    return parsePushCredentials(provider, input);
  } catch (error) {
    if (!(error instanceof PushCredentialsError)) throw error;
    throw new ApiError('invalid_request', {
      param: `credentials.${error.field}`,
      message: `${error.message}.`,
    });
  }
}

export async function removeCredentials(
  ctx: EnvironmentContext,
  { provider }: Input<'push.removeCredentials'>,
): Promise<void> {
  await ctx.db.tx(async (tx) => {
    const before = await credentials.dropCredentials(tx, ctx.env.no, provider);
    if (!before) throw new ApiError('not_found', { message: `There are no credentials for ${provider}.` });
    await record(ctx, tx, {
      where: { env: ctx.env.no },
      action: 'push.removeCredentials',
      target: provider,
      before,
      after: null,
    });
  });
}
