import { ApiError } from '@parley/protocol';
import type { AccountContext } from '../context.ts';
import type { RelyingParty } from './passkeys.ts';

/** The site that passkeys belong to: CHAT_ORIGIN or, if it is not set, the host that the browser names. */
export function relyingParty({ http, services }: AccountContext): RelyingParty {
  const origin = services.accounts.origin ?? `${http.secure ? 'https' : 'http'}://${http.host}`;
  const url = URL.parse(origin);
  if (!url) throw new ApiError('invalid_request', { message: 'The request names no host.' });
  return { id: url.hostname, origin: url.origin };
}
