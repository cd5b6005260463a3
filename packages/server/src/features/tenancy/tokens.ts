import { createHmac, timingSafeEqual } from 'node:crypto';
import { ApiError, limits, userIdPattern } from '@parley/protocol';

/**
 * User tokens (DECISIONS, Tenancy): JWT, HS256 pinned, header `kid` = key id, HMAC key = the UTF-8 bytes of the whole secret
 * key string, claims `sub`, `iat`, `exp`. Development tokens: `alg: none`, no `kid`, empty signature.
 */

export interface Claims {
  sub: string;
  /** Seconds. */
  iat: number;
  exp: number;
}

export type ParsedToken =
  | { kind: 'signed'; keyId: string; signed: string; signature: Buffer; payload: string }
  | { kind: 'development'; claims: Claims };

const invalid = (message?: string) => new ApiError('token_invalid', message ? { message } : {});
const userId = new RegExp(userIdPattern);
const keyId = /^[A-Za-z0-9]{16}$/;
const base64url = /^[A-Za-z0-9_-]*$/;
/** What a Date can hold, in seconds: an `exp` beyond it could not be told to anybody. */
const lastSecond = 8.64e12;

function part(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch {
    // falls through to the refusal
  }
  throw invalid();
}

export function parseToken(token: string, nowSeconds: number): ParsedToken {
  const parts = token.split('.');
  const [head, payload, signature] = parts;
  if (
    parts.length !== 3 ||
    !head ||
    !payload ||
    signature === undefined ||
    !parts.every((p) => base64url.test(p))
  )
    throw invalid();
  const header = part(head);
  if ('crit' in header) throw invalid();
  if (header['alg'] === 'HS256' && typeof header['kid'] === 'string' && keyId.test(header['kid'])) {
    return {
      kind: 'signed',
      keyId: header['kid'],
      signed: `${head}.${payload}`,
      signature: Buffer.from(signature, 'base64url'),
      payload,
    };
  }
  if (header['alg'] === 'none' && !('kid' in header) && signature === '') {
    const claims = part(payload);
    const exp = claims['exp'] ?? nowSeconds + limits.tokenSeconds.default;
    return {
      kind: 'development',
      claims: checkClaims({ sub: claims['sub'], iat: claims['iat'] ?? 0, exp }, nowSeconds),
    };
  }
  throw invalid();
}

const sign = (signed: string, secretKey: string): Buffer =>
  createHmac('sha256', secretKey).update(signed).digest();

/** True when the signature is this key's. */
export function signatureMatches(
  token: Extract<ParsedToken, { kind: 'signed' }>,
  secretKey: string,
): boolean {
  const expected = sign(token.signed, secretKey);
  return token.signature.length === expected.length && timingSafeEqual(token.signature, expected);
}

/** @param cutoff seconds: a token minted right after a revocation is dated with its cut-off, which may lie ahead. */
export const signedClaims = (
  token: Extract<ParsedToken, { kind: 'signed' }>,
  nowSeconds: number,
  cutoff: number,
): Claims => checkClaims(part(token.payload), nowSeconds, cutoff);

/** Who a signed token speaks for, before its signature was checked: only to look the user up. Empty: nobody. */
export function claimedSubject(token: ParsedToken): string {
  if (token.kind === 'development') return token.claims.sub;
  const sub = part(token.payload)['sub'];
  return typeof sub === 'string' && userId.test(sub) ? sub : '';
}

function checkClaims(claims: Record<string, unknown>, nowSeconds: number, cutoff = 0): Claims {
  const { sub, iat, exp } = claims;
  if (typeof sub !== 'string' || !userId.test(sub)) throw invalid('The token names no valid user (sub).');
  if (typeof iat !== 'number' || !Number.isFinite(iat)) throw invalid('The token has no iat.');
  if (typeof exp !== 'number' || !Number.isFinite(exp)) throw invalid('The token has no exp.');
  if (exp > lastSecond) throw invalid('The exp of the token is beyond any date; it is in seconds.');
  if (iat > Math.max(nowSeconds + limits.tokenLeewaySeconds, cutoff))
    throw invalid('The token was issued in the future.');
  if (exp <= nowSeconds) throw new ApiError('token_expired');
  return { sub, iat, exp };
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

export function mintToken(secretKey: string, keyId: string, claims: Claims): string {
  const signed = `${encode({ alg: 'HS256', typ: 'JWT', kid: keyId })}.${encode(claims)}`;
  return `${signed}.${sign(signed, secretKey).toString('base64url')}`;
}
