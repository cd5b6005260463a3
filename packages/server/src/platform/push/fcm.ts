import { createPrivateKey } from 'node:crypto';
import type { FcmCredentials } from './credentials.ts';
import { asObject, codeText, jsonObject, post, statusOutcome } from './http.ts';
import type { HttpResponse } from './port.ts';
import { signJwt } from './jwt.ts';
import { categoryOf, collapseId, fitNotification, isDataOnly, unixSeconds } from './payload.ts';
import type { PushDependencies, PushEndpoints, PushNotification, PushOutcome, PushProvider } from './port.ts';

const scope = 'https://www.googleapis.com/auth/firebase.messaging';
const grantType = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const refreshBeforeMs = 60_000;
const assertionSeconds = 3600;
const maxTtlSeconds = 28 * 24 * 3600;
// The limit is 4,096 bytes of notification and data; FCM adds its own keys when it passes them on to APNs.
const maxPayloadBytes = 3584;

type Access = { token: string; expiresAt: number };

/** FCM HTTP v1: https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages/send */
export function createFcmProvider(
  credentials: FcmCredentials,
  { request, now }: PushDependencies,
  endpoints: PushEndpoints,
): PushProvider {
  // The key file's own `token_uri` is an address that a customer entered, and is never used.
  const oauthUrl = endpoints.oauth ?? 'https://oauth2.googleapis.com/token';
  const sendUrl = `${endpoints.fcm ?? 'https://fcm.googleapis.com'}/v1/projects/${encodeURIComponent(credentials.project_id)}/messages:send`;
  const key = createPrivateKey(credentials.private_key);
  let access: Access | undefined;
  let refreshing: Promise<Access | PushOutcome> | undefined;

  async function refresh(): Promise<Access | PushOutcome> {
    const iat = unixSeconds(now());
    const assertion = signJwt(
      'RS256',
      key,
      credentials.private_key_id === undefined ? {} : { kid: credentials.private_key_id },
      { iss: credentials.client_email, scope, aud: oauthUrl, iat, exp: iat + assertionSeconds },
    );
    const result = await post(
      request,
      oauthUrl,
      { 'content-type': 'application/x-www-form-urlencoded' },
      new URLSearchParams({ grant_type: grantType, assertion }).toString(),
    );
    if ('failed' in result) return result.failed;
    const body = jsonObject(result.response.body);
    if (result.response.status !== 200) return statusOutcome(result.response, now(), codeText(body.error));
    if (typeof body.access_token !== 'string' || typeof body.expires_in !== 'number') {
      return { kind: 'retry', reason: 'oauth_answer_unreadable' };
    }
    access = { token: body.access_token, expiresAt: now() + body.expires_in * 1000 };
    return access;
  }

  function accessToken(): Promise<Access | PushOutcome> {
    if (access !== undefined && now() < access.expiresAt - refreshBeforeMs) return Promise.resolve(access);
    refreshing ??= refresh().finally(() => {
      refreshing = undefined;
    });
    return refreshing;
  }

  return {
    async send(token, notification) {
      const body = fitNotification(notification, maxPayloadBytes, (title, text) =>
        content(notification, title, text),
      );
      if (body === undefined) return { kind: 'rejected', reason: 'payload_too_large' };
      const { alert, ...shown } = asObject(JSON.parse(body));
      const message = JSON.stringify({
        message: { token, ...shown, ...options(notification, alert, now()) },
      });
      // Google may end an access token early; trying once with a fresh one distinguishes that from bad credentials.
      for (let attempt = 1; ; attempt += 1) {
        const current = await accessToken();
        if ('kind' in current) return current;
        const headers = { authorization: `Bearer ${current.token}`, 'content-type': 'application/json' };
        const result = await post(request, sendUrl, headers, message);
        if ('failed' in result) return result.failed;
        const answer = outcome(result.response, now());
        // THIRD_PARTY_AUTH_ERROR is about what the customer gave Google for Apple or browsers, not about our token.
        const refused = result.response.status === 401 && !isThirdParty(answer);
        if (!refused || attempt === 2) return answer;
        if (access === current) access = undefined;
      }
    },
    close() {
      access = undefined;
    },
  };
}

/**
 * A call is data for the app on Android, which rings by itself, and an alert on iOS, where the system would drop
 * background pushes (`alert` is moved into the part for APNs).
 */
function content(notification: PushNotification, title: string, body: string): string {
  if (notification.call)
    return JSON.stringify({ data: { ...notification.data, title, body }, alert: { title, body } });
  return JSON.stringify({
    ...(isDataOnly(notification) ? {} : { notification: { title, body } }),
    data: notification.data,
  });
}

function options(notification: PushNotification, alert: unknown, now: number): object {
  const ttl = Math.min(Math.max(Math.floor(notification.ttlSeconds), 0), maxTtlSeconds);
  const high = notification.priority === 'high';
  const dataOnly = isDataOnly(notification);
  const category = categoryOf(notification);
  return {
    android: {
      collapse_key: notification.collapseKey,
      priority: high ? 'HIGH' : 'NORMAL',
      ttl: `${ttl}s`,
      ...(dataOnly || notification.call
        ? {}
        : { notification: { tag: notification.collapseKey, notification_count: notification.badge } }),
    },
    apns: {
      headers: {
        'apns-collapse-id': collapseId(notification.collapseKey, 64),
        'apns-expiration': String(unixSeconds(now) + ttl),
        'apns-priority': high && !dataOnly ? '10' : '5',
        'apns-push-type': dataOnly ? 'background' : 'alert',
      },
      payload: {
        aps: dataOnly
          ? { 'content-available': 1 }
          : {
              ...(alert === undefined ? {} : { alert }),
              ...(category === undefined ? {} : { category }),
              badge: notification.badge,
              sound: 'default',
              'thread-id': notification.collapseKey,
            },
      },
    },
    webpush: {
      headers: {
        TTL: String(ttl),
        Urgency: notification.priority,
        Topic: collapseId(notification.collapseKey, 32),
      },
    },
  };
}

const isThirdParty = (answer: PushOutcome): boolean =>
  answer.kind === 'rejected' && answer.reason === 'THIRD_PARTY_AUTH_ERROR';

/** https://firebase.google.com/docs/reference/fcm/rest/v1/ErrorCode */
function outcome(response: HttpResponse, now: number): PushOutcome {
  if (response.status === 200) return { kind: 'sent' };
  const error = asObject(jsonObject(response.body).error);
  const details = (Array.isArray(error.details) ? error.details : []).map(asObject);
  const code =
    details.map((detail) => codeText(detail.errorCode)).find((found) => found !== '') ??
    codeText(error.status);
  // A 404 without this code means a wrong project, which must not remove anybody's devices.
  if (code === 'UNREGISTERED') return { kind: 'dead', reason: code };
  // This code stands for a wrong body and for a wrong token; the text or the field tells which.
  if (code === 'INVALID_ARGUMENT' && blamesToken(error.message, details))
    return { kind: 'dead', reason: code };
  const result = statusOutcome(response, now, code);
  // "If there is no Retry-After header, default to 60 seconds."
  if (response.status === 429 && result.kind === 'retry') return { retryAfterMs: 60_000, ...result };
  return result;
}

function blamesToken(message: unknown, details: Record<string, unknown>[]): boolean {
  if (typeof message === 'string' && message.includes('registration token')) return true;
  const fields = details.flatMap((detail) =>
    Array.isArray(detail.fieldViolations) ? detail.fieldViolations : [],
  );
  return fields.some((violation) => asObject(violation).field === 'message.token');
}
