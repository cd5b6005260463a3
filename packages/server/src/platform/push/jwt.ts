import { sign, type KeyObject } from 'node:crypto';

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A signed compact JWT (RFC 7515), with either of the two algorithms that push vendors ask for. */
export function signJwt(alg: 'ES256' | 'RS256', key: KeyObject, header: object, claims: object): string {
  const input = `${part({ alg, typ: 'JWT', ...header })}.${part(claims)}`;
  // JWS wants r and s concatenated, not OpenSSL's DER (RFC 7518 3.4); RSA ignores the setting.
  const signature = sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' });
  return `${input}.${signature.toString('base64url')}`;
}
