import { ApiError, limits } from '@parley/protocol';
import type { Input, Output, PushDevice, PushDeviceView } from '@parley/protocol';
import { invalid, notFound } from '../../platform/api-errors.ts';
import { OutboundRefused } from '../../platform/outbound/outbound.ts';
import { parsePushCredentials, PushCredentialsError } from '../../platform/push/credentials.ts';
import type { PushCredentials } from '../../platform/push/credentials.ts';
import type { PushProviderName } from '../../platform/push/port.ts';
import { parseSubscription } from '../../platform/push/webpush-encryption.ts';
import { record } from '../audit/operations.ts';
import { actingUser } from '../callers.ts';
import { Reply } from '../context.ts';
import type { Context, EnvironmentContext, Operation } from '../context.ts';
import { existingUser } from '../users/operations.ts';
import * as credentials from './sql/credentials.ts';
import * as sql from './sql.ts';

/** push#devices: a device is identified by its token, which belongs to the user who registered it last. */

/**
 * The longest token in bytes once it is encoded for a path: a character may take several bytes, and the head of a
 * request has at most 16 KB.
 */
const mostEncoded = 12_288;

const bad = (message: string) => invalid('token', message);

function checkToken(ctx: Context, { provider, token, voipToken }: Input<'push.register'>): void {
  if (voipToken && provider !== 'apns') throw invalid('voipToken', 'voipToken is for apns only.');
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
  const user = actingUser(ctx).no;
  const env = ctx.env.no;
  checkToken(ctx, input);
  return ctx.db.tx(async (tx) => {
    const saved = await sql.saveDevice(tx, env, user, input.provider, input.token, input.voipToken);
    // The user was erased since the request was authenticated.
    if (!saved) throw new ApiError('token_invalid');
    const { known, ...device } = saved;
    if (!known) await sql.dropOldDevices(tx, env, user, limits.pushDevicesPerUser);
    await sql.listenForPush(tx, env);
    return known ? new Reply(200, device) : device;
  });
}

export const unregister: Operation<Context, 'push.unregister'> = async (ctx, input) => {
  if (!(await sql.dropDevice(ctx.db, ctx.env.no, actingUser(ctx).no, input.token))) throw notFound('Device');
};

export const listCredentials = async (ctx: EnvironmentContext): Promise<Output<'push.listCredentials'>> => ({
  data: await credentials.listCredentials(ctx.db, ctx.env.no),
});

export const setCredentials: Operation<EnvironmentContext, 'push.setCredentials'> = async (ctx, input) => {
  const { provider } = input;
  const parsed = parsedCredentials(provider, input.credentials);
  const { env, services } = ctx;
  return ctx.db.tx(async (tx) => {
    const before = (await credentials.listCredentials(tx, env.no)).find((one) => one.provider === provider);
    const after = await credentials.saveCredentials(tx, services.vault, env.no, provider, parsed);
    await record(ctx, tx, { action: 'push.setCredentials', target: provider, before: before ?? null, after });
    return after;
  });
};

/** The error names the field and what is expected, never the given value. */
function parsedCredentials(provider: PushProviderName, input: unknown): PushCredentials {
  try {
    return parsePushCredentials(provider, input);
  } catch (error) {
    if (!(error instanceof PushCredentialsError)) throw error;
    throw invalid(`credentials.${error.field}`, `${error.message}.`);
  }
}

export const removeCredentials: Operation<EnvironmentContext, 'push.removeCredentials'> = async (
  ctx,
  { provider },
) => {
  await ctx.db.tx(async (tx) => {
    const before = await credentials.dropCredentials(tx, ctx.env.no, provider);
    if (!before) throw new ApiError('not_found', { message: `There are no credentials for ${provider}.` });
    await record(ctx, tx, { action: 'push.removeCredentials', target: provider, before });
  });
};

/** A user's devices, as people who run the environment see them. */
export const devicesOf: Operation<Context, 'users.devices'> = async (ctx, input) => {
  const user = await existingUser(ctx, ctx.db, input.userId);
  return { data: (await sql.listDevices(ctx.db, ctx.env.no, user.no)).map(viewDevice) };
};

const deviceId = (no: number): string => `dev_${no}`;
const deviceNo = (id: string): number => (/^dev_\d{1,15}$/.test(id) ? Number(id.slice(4)) : -1);
/**
 * How many last characters of a token are shown to tell devices apart. A webpush token ends with keys, so there the
 * last ones of its address are shown.
 */
const shownCharacters = 6;

function viewDevice({ no, provider, token, createdAt, registeredAt }: sql.DeviceRow): PushDeviceView {
  const shown = provider === 'webpush' ? (parseSubscription(token)?.endpoint ?? '') : token;
  const tokenEnd = shown.length > 4 * shownCharacters ? shown.slice(-shownCharacters) : '';
  return { id: deviceId(no), provider, tokenEnd, createdAt, registeredAt };
}

export const removeDevice: Operation<Context, 'users.removeDevice'> = async (ctx, input) => {
  await ctx.db.tx(async (tx) => {
    const user = await existingUser(ctx, tx, input.userId);
    const provider = await sql.dropDeviceByNo(tx, ctx.env.no, user.no, deviceNo(input.deviceId));
    if (provider === undefined) throw notFound('Device');
    await record(ctx, tx, {
      action: 'users.removeDevice',
      user: user.no,
      before: { deviceId: input.deviceId, provider },
    });
  });
};

/**
 * Sends a test now, whatever the environment's push mode is. A token that its provider calls dead is removed, as with
 * any push.
 */
export const test: Operation<Context, 'push.test'> = async (ctx, input) => {
  const { env } = ctx;
  const user = await existingUser(ctx, ctx.db, input.userId);
  const all = await sql.listDevices(ctx.db, env.no, user.no);
  const chosen = input.deviceId === undefined ? all : all.filter((d) => d.no === deviceNo(input.deviceId!));
  if (input.deviceId !== undefined && chosen.length === 0) throw notFound('Device');
  await record(ctx, ctx.db, { action: 'push.test', user: user.no, after: { devices: chosen.length } });
  const outcomes = await ctx.services.push.test(env.no, chosen);
  return {
    data: chosen.map(({ no, provider }, i) => {
      const outcome = outcomes[i]!;
      const reason = 'reason' in outcome ? outcome.reason : null;
      return { deviceId: deviceId(no), provider, result: outcome.kind, reason };
    }),
  };
};
