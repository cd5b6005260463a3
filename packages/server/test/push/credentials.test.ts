import { deepEqual, equal, ok, throws } from 'node:assert/strict';
import { createECDH, generateKeyPairSync } from 'node:crypto';
import { describe, it } from 'node:test';
import { parsePushCredentials, PushCredentialsError } from '../../src/platform/push/credentials.ts';
import type { PushProviderName } from '../../src/platform/push/port.ts';

const pem = { type: 'pkcs8', format: 'pem' } as const;
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export(pem) as string;
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export(pem) as string;
const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey.export(pem) as string;

// A fixed key, so the base64url below is always 43 characters.
const ecdh = createECDH('prime256v1');
ecdh.setPrivateKey(Buffer.alloc(32, 7));
const vapid = {
  publicKey: ecdh.getPublicKey('base64url'),
  privateKey: Buffer.alloc(32, 7).toString('base64url'),
};

const good: Record<PushProviderName, Record<string, unknown>> = {
  fcm: {
    type: 'service_account',
    project_id: 'chat-1',
    client_email: 'a@b.iam.gserviceaccount.com',
    private_key: rsa,
  },
  apns: {
    keyId: 'ABC123DEFG',
    teamId: 'DEF123GHIJ',
    privateKey: p256,
    topic: 'com.example.chat',
    environment: 'sandbox',
  },
  expo: { accessToken: 'secret-token' },
  webpush: { ...vapid, subject: 'mailto:ops@example.com' },
};

const bad: [PushProviderName, string, unknown][] = [
  ['fcm', 'type', 'authorized_user'],
  ['fcm', 'project_id', '../../x'],
  ['fcm', 'project_id', undefined],
  ['fcm', 'client_email', 'nobody'],
  ['fcm', 'private_key', p256],
  ['fcm', 'private_key', 'hello'],
  ['fcm', 'private_key_id', { a: 1 }],
  ['apns', 'keyId', 'short'],
  ['apns', 'teamId', 5],
  ['apns', 'privateKey', rsa],
  ['apns', 'privateKey', p384],
  ['apns', 'privateKey', undefined],
  ['apns', 'topic', 'com.example\r\nx: y'],
  ['apns', 'environment', 'staging'],
  ['expo', 'accessToken', 'two words'],
  ['webpush', 'publicKey', `B${'A'.repeat(86)}`],
  ['webpush', 'privateKey', 'AAAA'],
  ['webpush', 'privateKey', Buffer.alloc(32).toString('base64url')],
  ['webpush', 'subject', 'ops@example.com'],
];

describe('push credentials', () => {
  for (const provider of Object.keys(good) as PushProviderName[]) {
    it(`${provider}: good ones are taken, and parsing the result again changes nothing`, () => {
      const parsed = parsePushCredentials(provider, good[provider]);
      equal(parsed.provider, provider);
      deepEqual(parsePushCredentials(provider, JSON.parse(JSON.stringify(parsed))), parsed);
    });

    it(`${provider}: what is no object is refused`, () => {
      for (const input of [undefined, null, 'text', 5, []]) {
        throws(() => parsePushCredentials(provider, input), PushCredentialsError);
      }
    });
  }

  for (const [provider, field, value] of bad) {
    it(`${provider}: ${field} ${typeof value === 'string' ? JSON.stringify(value.slice(0, 24)) : typeof value} is refused by name, without its value`, () => {
      throws(
        () => parsePushCredentials(provider, { ...good[provider], [field]: value }),
        (error: unknown) => {
          ok(error instanceof PushCredentialsError);
          // A wrong half of a key pair may be reported on either half.
          ok(error.field === field || (provider === 'webpush' && error.field === 'publicKey'));
          ok(typeof value !== 'string' || !error.message.includes(value));
          return true;
        },
      );
    });
  }

  it('a key whose line breaks are written out is the same key', () => {
    const written = { ...good.fcm, private_key: rsa.replaceAll('\n', '\\n') };
    deepEqual(parsePushCredentials('fcm', written), parsePushCredentials('fcm', good.fcm));
  });

  it('keeps nothing of a key file that says where to send', () => {
    const parsed = parsePushCredentials('fcm', {
      ...good.fcm,
      token_uri: 'https://evil.example',
      auth_uri: 'x',
    });
    deepEqual(Object.keys(parsed).sort(), ['client_email', 'private_key', 'project_id', 'provider', 'type']);
  });

  it('environment is production, and the Expo token absent, where not given', () => {
    const { environment: _, ...rest } = good.apns;
    equal(parsePushCredentials('apns', rest).environment, 'production');
    deepEqual(parsePushCredentials('expo', {}), { provider: 'expo' });
  });
});
