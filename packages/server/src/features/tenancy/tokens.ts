import { createHmac, timingSafeEqual } from 'node:crypto';
import { ApiError, limits, userIdPattern } from '@parley/protocol';

/**
 * User tokens (identity#user-token): JWT, HS256 pinned, header `kid` = key id, HMAC key = the UTF-8 bytes of the whole secret
 * key string, claims `sub`, `iat`, `exp`, and `nbf` where given. Development tokens: `alg: none`, no `kid`, empty signature.
 */

export interface Claims {
  sub: string;
  /** `iat` and `exp` are in seconds. */
  iat: number;
  exp: number;
}

type ParsedToken =
  | { kind: 'signed'; keyId: string; signed: string; signature: Buffer; payload: string }
  | { kind: 'development'; claims: Claims };

const invalid = (message: string) => new ApiError('token_invalid', { message });
const userId = new RegExp(userIdPattern);
const keyId = /^[A-Za-z0-9]{16}$/;
const base64url = /^[A-Za-z0-9_-]*$/;
/** The largest time that a Date can hold, in seconds: a later `exp` could not be shown. */
const lastSecond = 8.64e12;

function part(text: string, name: 'header' | 'payload'): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch {
    // Unreadable text is refused below.
  }
  throw invalid(`The ${name} of the token is not a JSON object.`);
}

/** An unknown key and a wrong signature get the same answer, so that nobody learns which keys exist. */
export const badSignature = (): ApiError =>
  invalid('The signature is wrong: sign with the whole secret key string, and put its key id into kid.');

export function parseToken(token: string, nowSeconds: number): ParsedToken {
  if (token.startsWith('sk_')) throw invalid('This secret key is malformed.');
  const parts = token.split('.');
  const [head, payload, signature] = parts;
  if (
    parts.length !== 3 ||
    !head ||
    !payload ||
    signature === undefined ||
    !parts.every((p) => base64url.test(p))
  )
    throw invalid('The token is not a JWT: three parts in base64url with dots between them.');
  const header = part(head, 'header');
  if ('crit' in header) throw invalid('The token has a crit header, which is not supported.');
  if (header['alg'] === 'HS256') {
    if (typeof header['kid'] !== 'string' || !keyId.test(header['kid']))
      throw invalid(
        'The header of the token needs a kid: the 16 characters after sk_live_ in the secret key.',
      );
    return {
      kind: 'signed',
      keyId: header['kid'],
      signed: `${head}.${payload}`,
      signature: Buffer.from(signature, 'base64url'),
      payload,
    };
  }
  if (header['alg'] !== 'none') throw invalid('The alg of the token must be HS256.');
  if ('kid' in header || signature !== '')
    throw invalid('A development token (alg none) has neither kid nor signature.');
  const claims = part(payload, 'payload');
  const exp = claims['exp'] ?? nowSeconds + limits.tokenSeconds.default;
  return {
    kind: 'development',
    claims: checkClaims({ ...claims, iat: claims['iat'] ?? 0, exp }, nowSeconds),
  };
}

const sign = (signed: string, secretKey: string): Buffer =>
  createHmac('sha256', secretKey).update(signed).digest();

/** True if this key made the signature. */
export function signatureMatches(
  token: Extract<ParsedToken, { kind: 'signed' }>,
  secretKey: string,
): boolean {
  const expected = sign(token.signed, secretKey);
  return token.signature.length === expected.length && timingSafeEqual(token.signature, expected);
}

/** @param cutoff seconds; a token minted right after a revocation is dated with its cut-off, which may be in the future. */
export const signedClaims = (
  token: Extract<ParsedToken, { kind: 'signed' }>,
  nowSeconds: number,
  cutoff: number,
): Claims => checkClaims(part(token.payload, 'payload'), nowSeconds, cutoff);

/**
 * The user whom a signed token names, before its signature was checked: only for looking the user up. Empty if it
 * names nobody.
 */
export function claimedSubject(token: ParsedToken): string {
  if (token.kind === 'development') return token.claims.sub;
  const sub = part(token.payload, 'payload')['sub'];
  return typeof sub === 'string' && userId.test(sub) ? sub : '';
}

function checkClaims(claims: Record<string, unknown>, nowSeconds: number, cutoff = 0): Claims {
  const { sub, iat, exp, nbf } = claims;
  if (typeof sub !== 'string' || !userId.test(sub)) throw invalid('The token names no valid user (sub).');
  if (typeof iat !== 'number' || !Number.isFinite(iat)) throw invalid('The token has no iat.');
  if (typeof exp !== 'number' || !Number.isFinite(exp)) throw invalid('The token has no exp.');
  if (exp > lastSecond) throw invalid('The exp of the token is beyond any date; it is in seconds.');
  if (iat > Math.max(nowSeconds + limits.tokenLeewaySeconds, cutoff))
    throw invalid('The token was issued in the future.');
  if (nbf !== undefined && (typeof nbf !== 'number' || !(nbf <= nowSeconds + limits.tokenLeewaySeconds)))
    throw invalid('The token is not valid yet (nbf).');
  if (exp <= nowSeconds) throw new ApiError('token_expired');
  return { sub, iat, exp };
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

export function mintToken(secretKey: string, keyId: string, claims: Claims): string {
  const signed = `${encode({ alg: 'HS256', typ: 'JWT', kid: keyId })}.${encode(claims)}`;
  return `${signed}.${sign(signed, secretKey).toString('base64url')}`;
}
