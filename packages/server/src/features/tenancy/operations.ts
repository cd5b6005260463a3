import { ApiError, limits } from '@parley/protocol';
import type { Input, Output } from '@parley/protocol';
import type { Context } from '../context.ts';
import { resolveUsers } from '../users/operations.ts';
import { findUser } from '../users/sql.ts';
import { sealContext } from './keys.ts';
import { mintToken } from './tokens.ts';

/** POST /v1/tokens. A token minted right after a revocation works: `iat` is at least the cut-off. */
export async function createToken(
  ctx: Context,
  input: Input<'tokens.create'>,
): Promise<Output<'tokens.create'>> {
  if (ctx.caller.kind !== 'server') throw new ApiError('forbidden');
  const { keyId } = ctx.caller;
  const [key] = await ctx.db.query<{ secret: Buffer }>(
    'SELECT secret FROM secret_keys WHERE env = $1 AND id = $2',
    [ctx.env.no, keyId],
  );
  if (!key) throw new ApiError('key_revoked');
  await resolveUsers(ctx, ctx.db, [input.userId]);
  const user = await findUser(ctx.db, ctx.env.no, input.userId);
  if (!user) throw new ApiError('not_found', { message: 'There is no such user.' });
  if (user.deactivated_at) throw new ApiError('user_deactivated');
  const now = Math.floor(ctx.services.clock.now() / 1000);
  const iat = Math.max(now, user.tokens_from === null ? 0 : Date.parse(user.tokens_from) / 1000);
  const exp = iat + (input.expiresIn ?? limits.tokenSeconds.default);
  const secretKey = ctx.services.vault.open(key.secret, sealContext(keyId)).toString();
  return {
    token: mintToken(secretKey, keyId, { sub: input.userId, iat, exp }),
    expiresAt: new Date(exp * 1000).toISOString(),
  };
}
