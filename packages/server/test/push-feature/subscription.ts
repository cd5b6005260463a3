import { createECDH } from 'node:crypto';

const browser = createECDH('prime256v1');
browser.generateKeys();

/** A browser's PushSubscription as JSON. */
export const subscription = (id: string, endpoint = 'https://push.example.com/'): string =>
  JSON.stringify({
    endpoint: `${endpoint}${id}`,
    expirationTime: null,
    keys: {
      p256dh: browser.getPublicKey('base64url'),
      auth: Buffer.from('0123456789abcdef').toString('base64url'),
    },
  });
