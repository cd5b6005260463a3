import { createHmac } from 'node:crypto';
import { environments } from './service.ts';
import type { EnvironmentName } from './service.ts';

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
export const nowSeconds = (now: () => number = Date.now): number => Math.floor(now() / 1000);

/** A JWT put together by hand, as any JWT library would (identity#user-token), with every part open to change. */
export function signToken(
  claims: Record<string, unknown>,
  options: {
    environment?: EnvironmentName;
    secretKey?: string;
    header?: object;
    hash?: string;
    now?: (() => number) | undefined;
  } = {},
): string {
  const secretKey = options.secretKey ?? environments[options.environment ?? 'dev'].secretKey;
  const header = { alg: 'HS256', typ: 'JWT', kid: secretKey.split('_')[2], ...options.header };
  const now = nowSeconds(options.now);
  const signed = `${encode(header)}.${encode({ iat: now, exp: now + 3_600, ...claims })}`;
  return `${signed}.${createHmac(options.hash ?? 'sha256', secretKey)
    .update(signed)
    .digest('base64url')}`;
}

export const devToken = (claims: Record<string, unknown>, header: object = {}): string =>
  `${encode({ alg: 'none', ...header })}.${encode(claims)}.`;
