import { createECDH, createPrivateKey, type KeyObject } from 'node:crypto';
import { asObject } from './http.ts';
import type { PushProviderName } from './port.ts';

/** A Google service account's key file, as downloaded; its other fields are not kept. */
export interface FcmCredentials {
  provider: 'fcm';
  type: 'service_account';
  project_id: string;
  client_email: string;
  private_key: string;
  private_key_id?: string;
}

/** An APNs signing key (.p8) with the app that it is for. */
export interface ApnsCredentials {
  provider: 'apns';
  keyId: string;
  teamId: string;
  privateKey: string;
  /** The app's bundle id. */
  topic: string;
  environment: 'production' | 'sandbox';
}

export interface ExpoCredentials {
  provider: 'expo';
  /** Needed only if the Expo project has enhanced push security switched on. */
  accessToken?: string;
}

/** VAPID keys in the usual base64url form: 65 and 32 bytes. */
export interface WebpushCredentials {
  provider: 'webpush';
  publicKey: string;
  privateKey: string;
  /** mailto: or https: contact of the operator (RFC 8292 2.1). */
  subject: string;
}

export type PushCredentials = FcmCredentials | ApnsCredentials | ExpoCredentials | WebpushCredentials;

/** The error names the field and what is expected, never the value. */
export class PushCredentialsError extends Error {
  readonly field: string;

  constructor(field: string, expected: string) {
    super(`${field} ${expected}`);
    this.name = 'PushCredentialsError';
    this.field = field;
  }
}

type Fields = Record<string, unknown>;

const parsers: { [N in PushProviderName]: (fields: Fields) => PushCredentials } = {
  fcm: (fields) => ({
    provider: 'fcm',
    type: choice(fields, 'type', ['service_account']),
    project_id: text(fields, 'project_id', /^[a-z0-9.:-]{1,64}$/, 'must be a Google project id'),
    client_email: text(fields, 'client_email', /^[^\s@]{1,200}@[^\s@]{1,200}$/, 'must be an e-mail address'),
    private_key: pem(
      fields,
      'private_key',
      'must be an RSA private key in PEM',
      (key) => key.asymmetricKeyType === 'rsa',
    ),
    ...optional(fields, 'private_key_id', /^[\w-]{1,128}$/, 'must be a key id'),
  }),
  apns: (fields) => ({
    provider: 'apns',
    keyId: text(fields, 'keyId', /^[A-Z0-9]{10}$/, 'must be the 10 characters of the key id'),
    teamId: text(fields, 'teamId', /^[A-Z0-9]{10}$/, 'must be the 10 characters of the team id'),
    privateKey: pem(fields, 'privateKey', 'must be the text of the .p8 file (a P-256 key in PEM)', isP256),
    topic: text(fields, 'topic', /^[A-Za-z0-9.-]{1,155}$/, 'must be the bundle id of the app'),
    environment: choice(fields, 'environment', ['production', 'sandbox'], 'production'),
  }),
  expo: (fields) => ({
    provider: 'expo',
    ...optional(fields, 'accessToken', /^[\w.~+/=-]{1,512}$/, 'must be an Expo access token'),
  }),
  webpush: (fields) => {
    const publicKey = text(fields, 'publicKey', /^[\w-]{87}=?$/, 'must be 65 bytes in base64url');
    const privateKey = text(fields, 'privateKey', /^[\w-]{43}=?$/, 'must be 32 bytes in base64url');
    if (vapidPublicKey(privateKey) !== publicKey.replace('=', '')) {
      throw new PushCredentialsError('publicKey', 'must belong to privateKey');
    }
    const subject = text(
      fields,
      'subject',
      /^(mailto:[^\s@]+@[^\s@]+|https:\/\/\S+)$/,
      'must be a mailto: or https: address',
    );
    return {
      provider: 'webpush',
      publicKey: publicKey.replace('=', ''),
      privateKey: privateKey.replace('=', ''),
      subject,
    };
  },
};

/** Checks everything that can be checked without asking the vendor; parsing its own result changes nothing. */
export function parsePushCredentials<N extends PushProviderName>(
  provider: N,
  input: unknown,
): Extract<PushCredentials, { provider: N }> {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw new PushCredentialsError('credentials', 'must be a JSON object');
  }
  return parsers[provider](asObject(input)) as Extract<PushCredentials, { provider: N }>;
}

function text(fields: Fields, field: string, pattern: RegExp, expected: string): string {
  const value = fields[field];
  if (value === undefined) throw new PushCredentialsError(field, 'is missing');
  if (typeof value !== 'string' || value.length > 1024 || !pattern.test(value)) {
    throw new PushCredentialsError(field, expected);
  }
  return value;
}

function optional<F extends string>(
  fields: Fields,
  field: F,
  pattern: RegExp,
  expected: string,
): { [K in F]?: string } {
  if (fields[field] === undefined) return {};
  return { [field]: text(fields, field, pattern, expected) } as { [K in F]?: string };
}

function choice<T extends string>(fields: Fields, field: string, values: readonly T[], fallback?: T): T {
  const value = fields[field] ?? fallback;
  const found = values.find((candidate) => candidate === value);
  if (found === undefined) throw new PushCredentialsError(field, `must be ${values.join(' or ')}`);
  return found;
}

function pem(fields: Fields, field: string, expected: string, check: (key: KeyObject) => boolean): string {
  const value = fields[field];
  if (value === undefined) throw new PushCredentialsError(field, 'is missing');
  if (typeof value !== 'string' || value.length > 16_384) throw new PushCredentialsError(field, expected);
  // Keys that came through an environment variable often have `
  // ` instead of line breaks.
  const key = value.replaceAll('\\n', '\n').trim() + '\n';
  try {
    if (check(createPrivateKey(key))) return key;
  } catch {
    // The error below says what is expected; OpenSSL's says no more.
  }
  throw new PushCredentialsError(field, expected);
}

function isP256(key: KeyObject): boolean {
  return key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1';
}

function vapidPublicKey(privateKey: string): string {
  const ecdh = createECDH('prime256v1');
  try {
    ecdh.setPrivateKey(Buffer.from(privateKey, 'base64url'));
  } catch {
    throw new PushCredentialsError('privateKey', 'must be a P-256 private key');
  }
  return ecdh.getPublicKey('base64url');
}
