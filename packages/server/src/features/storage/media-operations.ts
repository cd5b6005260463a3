import { ApiError } from '@parley/protocol';
import type { Input, MediaTest } from '@parley/protocol';
import { OutboundRefused } from '../../platform/outbound/outbound.ts';
import { testMedia as tried } from '../../platform/storage/media-test.ts';
import type { MediaConfig } from '../../platform/storage/media-url.ts';
import { parseCloudinaryUrl } from '../../platform/storage/cloudinary.ts';
import type { Context, Operation } from '../context.ts';
import { audit, nowOf } from './slot-operations.ts';
import { lockStorage } from './sql.ts';
import * as sql from './sql/media.ts';

/** storage#media: a customer's own media storage. A storage that fails its test is not used. */

const bad = (message: string, param?: string) =>
  new ApiError('invalid_request', { message, ...(param ? { param } : {}) });

/** The configuration in the shape that belongs to `provider`; fields of the other shapes are refused. */
function configOf(input: Input<'storage.setMedia'>): MediaConfig {
  const { origin: _origin, ...fields } = input;
  const { provider } = fields;
  const known: Record<typeof provider, { required: string[]; takes: string[] }> = {
    cloudinary: { required: ['cloudinaryUrl'], takes: ['folder'] },
    s3: {
      required: ['region', 'bucket', 'accessKeyId', 'secretAccessKey'],
      takes: ['preset', 'endpoint', 'prefix', 'forcePathStyle'],
    },
    azure: { required: ['account', 'accountKey', 'container'], takes: ['prefix', 'endpoint'] },
  };
  const { required, takes } = known[provider];
  for (const name of Object.keys(fields))
    if (name !== 'provider' && !required.includes(name) && !takes.includes(name))
      throw bad(`${name} is no field of ${provider}.`, name);
  for (const name of required) if (!(name in fields)) throw bad(`${provider} needs ${name}.`, name);
  return fields as unknown as MediaConfig;
}

/** The configuration for showing, without secrets. */
function shownOf(config: MediaConfig): object {
  if (config.provider === 'cloudinary') {
    const { cloud, apiKey } = parseCloudinaryUrl(config.cloudinaryUrl);
    return { cloudinaryUrl: `cloudinary://${apiKey}:***@${cloud}`, folder: config.folder ?? null };
  }
  const {
    provider: _p,
    secretAccessKey: _s,
    accountKey: _k,
    ...shown
  } = config as MediaConfig & Record<'secretAccessKey' | 'accountKey', string>;
  return shown;
}

async function test(
  ctx: Context,
  config: MediaConfig | null,
  origin: string | undefined,
): Promise<MediaTest> {
  const { media, ids } = ctx.services;
  const { storage, request } = config ? media.tryOut(config, ctx.env.no) : await media.currentFor(ctx.env.no);
  const result = await tried(storage, request, {
    key: `${ctx.env.id}/test-${ids.secret(20)}`,
    now: ctx.services.clock.now(),
    origin,
  });
  return { ...result, provider: storage.provider, at: nowOf(ctx) };
}

export const setMedia: Operation<Context, 'storage.setMedia'> = async (ctx, input) => {
  const config = configOf(input);
  let result: MediaTest;
  try {
    result = await test(ctx, config, input.origin);
  } catch (error) {
    if (error instanceof TypeError || error instanceof OutboundRefused)
      throw bad(`The storage cannot be used: ${error.message}.`);
    throw error;
  }
  if (!result.ok) return result;
  const shown = shownOf(config);
  await ctx.db.tx(async (tx) => {
    await lockStorage(tx, ctx.env.no);
    const no = await ctx.services.media.add(tx, ctx.env.no, config, shown, nowOf(ctx));
    await sql.setMedia(tx, ctx.env.no, no, result);
    await audit(ctx, tx, 'storage.setMedia', null, { provider: config.provider, ...shown });
  });
  return result;
};

export const testMedia: Operation<Context, 'storage.testMedia'> = async (ctx, input) => {
  const result = await test(ctx, null, input.origin);
  await sql.setMediaTest(ctx.db, ctx.env.no, result);
  return result;
};

/** New files go to the service's own storage again; those that are elsewhere stay there and stay readable. */
export async function removeMedia(ctx: Context): Promise<void> {
  await ctx.db.tx(async (tx) => {
    await lockStorage(tx, ctx.env.no);
    const before = await sql.clearMedia(tx, ctx.env.no);
    if (!before) return;
    await audit(ctx, tx, 'storage.removeMedia', before, { provider: 'managed' });
  });
}
