import { createHmac } from 'node:crypto';

const keyPattern = /^sk_live_([A-Za-z0-9]{16})_[A-Za-z0-9]{32}$/;
const longestSeconds = 2_592_000;

export interface TokenOptions {
  userId: string;
  /** Seconds, 1 to 2,592,000; the default is a day. */
  expiresIn?: number;
  now?: () => number;
}

export function keyIdOf(secretKey: string): string {
  const keyId = keyPattern.exec(secretKey)?.[1];
  if (keyId === undefined) throw new TypeError('secretKey is missing or malformed: it begins with sk_live_');
  return keyId;
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Makes a user token without asking the service (identity#user-token): HS256, with `kid`, keyed with the whole secret key string. */
export function signToken(options: TokenOptions & { secretKey: string }): string {
  const { secretKey, userId, expiresIn = 86_400, now = Date.now } = options;
  const kid = keyIdOf(secretKey);
  if (typeof userId !== 'string' || !/^[A-Za-z0-9_\-@.:]{1,128}$/.test(userId)) {
    throw new TypeError('userId must be a string of 1 to 128 characters of A-Z a-z 0-9 _ - @ . :');
  }
  if (!Number.isInteger(expiresIn) || expiresIn < 1 || expiresIn > longestSeconds) {
    throw new RangeError(`expiresIn must be 1 to ${longestSeconds} seconds`);
  }
  const iat = Math.floor(now() / 1000);
  const signed = `${encode({ alg: 'HS256', typ: 'JWT', kid })}.${encode({ sub: userId, iat, exp: iat + expiresIn })}`;
  return `${signed}.${createHmac('sha256', secretKey).update(signed).digest('base64url')}`;
}
