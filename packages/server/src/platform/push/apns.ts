import { createPrivateKey } from 'node:crypto';
import { connect, type ClientHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { ApnsCredentials } from './credentials.ts';
import { codeText, errorReason, jsonObject, requestTimeoutMs, statusOutcome } from './http.ts';
import type { HttpResponse } from './port.ts';
import { signJwt } from './jwt.ts';
import { categoryOf, collapseId, fitNotification, isDataOnly, unixSeconds } from './payload.ts';
import type { PushDependencies, PushNotification, PushOutcome, PushProvider } from './port.ts';

/** For tests only. */
export interface ApnsOptions {
  origin?: string;
  timeoutMs?: number;
  maxInFlight?: number;
}

const origins = { production: 'https://api.push.apple.com', sandbox: 'https://api.sandbox.push.apple.com' };
// Apple refuses tokens older than an hour, and new ones more often than every 20 minutes.
const tokenLifeMs = 40 * 60_000;
const idleMs = 15 * 60_000;
const maxPayloadBytes = 4096;
const maxAnswerBytes = 4096;
const busyRetryMs = 1000;

interface Session {
  http2: ClientHttp2Session;
  socket: Socket | undefined;
}

/**
 * APNs with provider tokens:
 * https://developer.apple.com/documentation/usernotifications/sending-notification-requests-to-apns
 * One HTTP/2 session carries everything; a session that is closing is replaced at the next send. Node queues requests
 * beyond the streams that Apple allows, so only the total in flight is bounded here.
 */
export function createApnsProvider(
  credentials: ApnsCredentials,
  { now }: Pick<PushDependencies, 'now'>,
  options: ApnsOptions = {},
): PushProvider {
  const origin = options.origin ?? origins[credentials.environment];
  const { timeoutMs = requestTimeoutMs, maxInFlight = 500 } = options;
  const key = createPrivateKey(credentials.privateKey);
  let session: Session | undefined;
  let provider: { token: string; issuedAt: number } | undefined;
  let inFlight = 0;

  function providerToken(): string {
    const at = now();
    if (provider === undefined || at < provider.issuedAt || at - provider.issuedAt >= tokenLifeMs) {
      const claims = { iss: credentials.teamId, iat: unixSeconds(at) };
      provider = { token: signJwt('ES256', key, { kid: credentials.keyId }, claims), issuedAt: at };
    }
    return provider.token;
  }

  /** Closes a session once its streams are done, and destroys its socket if the other side leaves it half open. */
  function retire({ http2, socket }: Session): void {
    http2.close();
    setTimeout(() => socket?.destroy(), timeoutMs).unref();
  }

  function connection(): ClientHttp2Session {
    if (session !== undefined && !session.http2.closed && !session.http2.destroyed) return session.http2;
    const opened: Session = { http2: connect(origin), socket: undefined };
    opened.http2.on('connect', (_, socket) => {
      opened.socket = socket;
    });
    // Each stream of a broken session fails by itself; without a listener the process would end.
    opened.http2.on('error', () => {});
    opened.http2.on('goaway', () => retire(opened));
    opened.http2.setTimeout(idleMs, () => retire(opened));
    session = opened;
    return opened.http2;
  }

  function exchange(headers: Record<string, string>, body: string): Promise<HttpResponse> {
    return new Promise((resolve, reject) => {
      const current = connection();
      const stream = current.request(headers);
      const chunks: Buffer[] = [];
      let size = 0;
      let response: Pick<HttpResponse, 'status' | 'headers'> | undefined;
      // No answer for this long means a dead connection: the next send opens another one.
      const timer = setTimeout(() => {
        reject(Object.assign(new Error('APNs did not answer'), { code: 'timeout' }));
        current.destroy();
      }, timeoutMs);
      stream.on('response', (answer) => {
        response = { status: answer[':status'] ?? 0, headers: answer };
      });
      stream.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size <= maxAnswerBytes) chunks.push(chunk);
      });
      stream.on('end', () => {
        if (response !== undefined) resolve({ ...response, body: Buffer.concat(chunks) });
      });
      stream.on('error', reject);
      stream.on('close', () => {
        clearTimeout(timer);
        reject(Object.assign(new Error('APNs closed the stream'), { code: 'stream_closed' }));
      });
      stream.end(body);
    });
  }

  async function deliver(token: string, notification: PushNotification, voip: boolean): Promise<PushOutcome> {
    // The token becomes part of a path.
    if (!/^[0-9a-f]{16,200}$/i.test(token)) return { kind: 'dead', reason: 'not_an_apns_token' };
    const body = fitNotification(notification, maxPayloadBytes, (title, text) =>
      voip ? voipPayload(notification, title, text) : payload(notification, title, text),
    );
    if (body === undefined) return { kind: 'rejected', reason: 'payload_too_large' };
    if (inFlight >= maxInFlight)
      return { kind: 'retry', reason: 'too_many_in_flight', retryAfterMs: busyRetryMs };
    inFlight += 1;
    try {
      // Apple may call a token expired that is young by our clock: one retry with a new token helps.
      for (let attempt = 1; ; attempt += 1) {
        const bearer = providerToken();
        const headers = {
          ':method': 'POST',
          ':path': `/3/device/${token}`,
          authorization: `bearer ${bearer}`,
          ...deliveryHeaders(notification, credentials.topic, now(), voip),
        };
        const response = await exchange(headers, body);
        if (response.status === 200) return { kind: 'sent' };
        const reason = codeText(jsonObject(response.body).reason);
        // BadDeviceToken and DeviceTokenNotForTopic are no reason to remove a device: the credentials may name the
        // wrong environment (sandbox or production) or the wrong topic.
        if (response.status === 410) return { kind: 'dead', reason };
        if (reason !== 'ExpiredProviderToken' || attempt === 2) return statusOutcome(response, now(), reason);
        if (provider?.token === bearer) provider = undefined;
      }
    } catch (error) {
      return { kind: 'retry', reason: errorReason(error) };
    } finally {
      inFlight -= 1;
    }
  }

  return {
    async send(token, notification, voipToken) {
      if (notification.call === 'incoming' && voipToken) {
        const outcome = await deliver(voipToken, notification, true);
        // A VoIP token that is no longer good must not cost the call: the device is told in the ordinary way.
        if (outcome.kind === 'sent' || outcome.kind === 'retry') return outcome;
      }
      return deliver(token, notification, false);
    },
    close() {
      if (session !== undefined) retire(session);
      session = undefined;
    },
  };
}

function deliveryHeaders(
  notification: PushNotification,
  topic: string,
  now: number,
  voip: boolean,
): Record<string, string> {
  const dataOnly = isDataOnly(notification);
  const ttl = Math.max(Math.floor(notification.ttlSeconds), 0);
  const expiration = String(ttl === 0 ? 0 : unixSeconds(now) + ttl);
  if (voip)
    return {
      'apns-topic': `${topic}.voip`,
      'apns-push-type': 'voip',
      'apns-priority': '10',
      'apns-expiration': expiration,
    };
  return {
    'apns-topic': topic,
    'apns-push-type': dataOnly ? 'background' : 'alert',
    // Apple: a background notification with priority 10 is an error.
    'apns-priority': notification.priority === 'high' && !dataOnly ? '10' : '5',
    'apns-expiration': expiration,
    'apns-collapse-id': collapseId(notification.collapseKey, 64),
  };
}

/** What the app hands to CallKit; the system shows nothing by itself. */
const voipPayload = ({ data }: PushNotification, title: string, body: string): string =>
  JSON.stringify({ ...data, title, body, aps: {} });

function payload(notification: PushNotification, title: string, body: string): string {
  const category = categoryOf(notification);
  const aps = isDataOnly(notification)
    ? { 'content-available': 1 }
    : {
        alert: { title, body },
        badge: notification.badge,
        sound: 'default',
        'thread-id': notification.collapseKey,
        ...(category === undefined ? {} : { category }),
      };
  return JSON.stringify({ ...notification.data, aps });
}
