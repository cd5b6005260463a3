import type { IncomingMessage } from 'node:http';
import { ApiError, realtime } from '@parley/protocol';

/** socket#open: the socket is at /v1 and speaks chat.v1. Returns the environments and the client that the URL names, or why it is refused. */
export function checkUpgrade(request: IncomingMessage): { named: string[]; sdk: string | null } | ApiError {
  if (isMalformed(request)) return malformed();
  const url = URL.parse(request.url ?? '/', 'http://parley');
  if (!url) return new ApiError('invalid_request', { message: 'The address is malformed.' });
  if (url.pathname !== '/v1' && url.pathname !== '/v1/')
    return new ApiError('not_found', { message: 'The socket is at /v1.' });
  if (request.headers['sec-websocket-version'] !== '13') return new ApiError('upgrade_required');
  const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((p) => p.trim());
  if (!offered.includes(realtime.subprotocol))
    return new ApiError('invalid_request', { message: `Offer the subprotocol ${realtime.subprotocol}.` });
  const sdk = url.searchParams.get('sdk');
  return { named: url.searchParams.getAll('env'), sdk: sdk && sdkPattern.test(sdk) ? sdk : null };
}

const sdkPattern = /^[\x20-\x7e]{1,64}$/;

/** RFC 9112: a request names one host, and HTTP/0.9 has no place here. A proxy in front may have read another request. */
export function isMalformed({ httpVersionMajor, rawHeaders }: IncomingMessage): boolean {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (rawHeaders[i]!.length === 4 && rawHeaders[i]!.toLowerCase() === 'host') hosts += 1;
  return httpVersionMajor !== 1 || hosts > 1;
}

export const malformed = (): ApiError =>
  new ApiError('invalid_request', { message: 'The request is malformed.' });

/** The client's address, found as in REST: a trusted proxy appends the address that it saw. */
export function clientAddress(request: IncomingMessage, trustProxy: boolean): string {
  const forwarded = trustProxy ? request.headers['x-forwarded-for'] : undefined;
  const last = [forwarded].flat().at(-1)?.split(',').at(-1)?.trim();
  return last || (request.socket.remoteAddress ?? '');
}
