import { createPrivateKey } from 'node:crypto';
import type { WebpushCredentials } from './credentials.ts';
import { errorReason, post, statusOutcome, type PostResult } from './http.ts';
import { signJwt } from './jwt.ts';
import { collapseId, fitNotification, unixSeconds } from './payload.ts';
import type { PushDependencies, PushNotification, PushProvider } from './port.ts';
import {
  encryptPayload,
  maxPlaintextBytes,
  parseSubscription,
  type PushSubscription,
} from './webpush-encryption.ts';

// RFC 8292 2: a token may expire at most 24 hours ahead.
const vapidLifeSeconds = 12 * 3600;
const vapidRenewSeconds = 3600;
// Audiences come from clients, so their number is bounded.
const maxAudiences = 100;
/** The size that is tried once after a 413: some services count differently. */
const smallPlaintextBytes = 2000;

/** Web Push: RFC 8030 delivery, RFC 8291 encryption, RFC 8292 VAPID. The token is the PushSubscription's JSON. */
export function createWebpushProvider(
  credentials: WebpushCredentials,
  { request, now, randomBytes }: PushDependencies,
): PushProvider {
  const point = Buffer.from(credentials.publicKey, 'base64url');
  const key = createPrivateKey({
    format: 'jwk',
    key: {
      kty: 'EC',
      crv: 'P-256',
      x: point.subarray(1, 33).toString('base64url'),
      y: point.subarray(33).toString('base64url'),
      d: credentials.privateKey,
    },
  });
  const vapidTokens = new Map<string, { token: string; exp: number }>();

  function vapidToken(aud: string): string {
    const at = unixSeconds(now());
    const known = vapidTokens.get(aud);
    if (known !== undefined && at < known.exp - vapidRenewSeconds) return known.token;
    const exp = at + vapidLifeSeconds;
    const token = signJwt('ES256', key, {}, { aud, exp, sub: credentials.subject });
    vapidTokens.delete(aud);
    const [oldest] = vapidTokens.keys();
    if (vapidTokens.size >= maxAudiences && oldest !== undefined) vapidTokens.delete(oldest);
    vapidTokens.set(aud, { token, exp });
    return token;
  }

  function deliver(
    subscription: PushSubscription,
    notification: PushNotification,
    plaintext: string,
  ): Promise<PostResult> {
    const headers = {
      authorization: `vapid t=${vapidToken(new URL(subscription.endpoint).origin)}, k=${credentials.publicKey}`,
      'content-encoding': 'aes128gcm',
      'content-type': 'application/octet-stream',
      ttl: String(Math.max(Math.floor(notification.ttlSeconds), 0)),
      urgency: notification.priority,
      topic: collapseId(notification.collapseKey, 32),
    };
    const body = encryptPayload(Buffer.from(plaintext), subscription, randomBytes(16), randomBytes(32));
    return post(request, subscription.endpoint, headers, body);
  }

  return {
    async send(token, notification) {
      const subscription = parseSubscription(token);
      if (subscription === undefined) return { kind: 'dead', reason: 'not_a_subscription' };
      let last: string | undefined;
      try {
        for (const limit of [maxPlaintextBytes, smallPlaintextBytes]) {
          const plaintext = fitNotification(notification, limit, (title, body) =>
            message(notification, title, body),
          );
          if (plaintext === undefined || plaintext === last) break;
          last = plaintext;
          const result = await deliver(subscription, notification, plaintext);
          if ('failed' in result)
            return result.refused ? { kind: 'dead', reason: 'address_refused' } : result.failed;
          const { status } = result.response;
          if (status >= 200 && status < 300) return { kind: 'sent' };
          if (status === 404 || status === 410) return { kind: 'dead', reason: `http_${status}` };
          // The answer's body is not read, because it comes from an address that a client entered.
          if (status !== 413) return statusOutcome(result.response, now());
        }
      } catch (error) {
        // One random number in 2^32 is not a valid private key of the curve; the next attempt takes another.
        return { kind: 'retry', reason: errorReason(error) };
      }
      return { kind: 'rejected', reason: 'payload_too_large' };
    },
    close() {
      vapidTokens.clear();
    },
  };
}

/** The text that the page's service worker reads with `event.data.json()`. */
function message({ badge, collapseKey, data }: PushNotification, title: string, body: string): string {
  return JSON.stringify({ title, body, badge, tag: collapseKey, data });
}
