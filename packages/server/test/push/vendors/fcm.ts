import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { parsePushCredentials } from '../../../src/platform/push/credentials.ts';
import {
  hasOnly,
  record,
  rule,
  serve,
  troubleAnswer,
  verifyJwt,
  type Answer,
  type Trouble,
  type Vendor,
} from './vendor.ts';

const email = 'push@parley-test.iam.gserviceaccount.com';

export interface FcmVendor extends Vendor {
  /** OAuth calls that were answered. */
  oauthCalls: number;
  oauthTrouble: Trouble[];
  /** Ends all access tokens, as revoking them at Google does. */
  revoke(): void;
  /** The whole error of the next send. */
  nextErrors: Answer[];
}

/** Keys of this size take long to make: one pair of them is enough for all vendors of a file. */
const mine = generateKeyPairSync('rsa', { modulusLength: 2048 });
const other = generateKeyPairSync('rsa', { modulusLength: 2048 });

export async function startFcm(now: () => number): Promise<FcmVendor> {
  const access = new Map<string, number>();
  let issued = 0;
  let oauthUrl = '';

  const oauth = await serve(
    (request, body) => {
      const trouble = vendor.oauthTrouble.shift();
      if (trouble !== undefined) return troubleAnswer(trouble);
      vendor.oauthCalls += 1;
      // RFC 7523 2.1: a form with grant_type and assertion.
      rule(
        request.headers['content-type'] === 'application/x-www-form-urlencoded',
        400,
        'invalid_request',
        'form body',
      );
      const form = new URLSearchParams(body.toString());
      rule(
        form.get('grant_type') === 'urn:ietf:params:oauth:grant-type:jwt-bearer',
        400,
        'unsupported_grant_type',
        'grant type',
      );
      // Google, "Using OAuth 2.0 for Server to Server Applications": RS256 by the account's key.
      const jwt = verifyJwt(form.get('assertion') ?? '', 'RS256', mine.publicKey);
      rule(jwt !== undefined, 400, 'invalid_grant', 'Invalid JWT Signature.');
      const { iss, aud, scope, iat, exp } = jwt.claims as Record<string, number | string>;
      // iss: the account's address; aud: always the token endpoint; scope: the one FCM asks for.
      rule(iss === email, 400, 'invalid_grant', 'iss');
      rule(aud === oauthUrl, 400, 'invalid_grant', 'aud');
      rule(scope === 'https://www.googleapis.com/auth/firebase.messaging', 400, 'invalid_scope', 'scope');
      // exp: at most an hour after iat, and not over yet.
      const at = now() / 1000;
      rule(
        Number(iat) <= at && Number(exp) > at && Number(exp) - Number(iat) <= 3600,
        400,
        'invalid_grant',
        'iat and exp',
      );
      const token = `ya29.${(issued += 1)}`;
      access.set(token, now() + 3599_000);
      return { status: 200, body: { access_token: token, expires_in: 3599, token_type: 'Bearer' } };
    },
    // A wrong signature is what wrong credentials look like: no fault of the adapter.
    ({ status, code, message }) => {
      if (message !== 'Invalid JWT Signature.') vendor.violations.push(message);
      return { status, body: { error: code, error_description: message } };
    },
  );
  oauthUrl = `${oauth.origin}/token`;

  const fcm = await serve(
    (request, body) => send(request, body),
    ({ status, code, message }) => {
      vendor.violations.push(message);
      return fcmError(status, code, message);
    },
  );

  function send(request: IncomingMessage, body: Buffer): Answer {
    rule(
      request.method === 'POST' && request.url === '/v1/projects/parley-test/messages:send',
      404,
      'NOT_FOUND',
      'path',
    );
    const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    if ((access.get(bearer) ?? 0) <= now())
      return fcmError(401, 'UNAUTHENTICATED', 'invalid authentication credentials');
    vendor.proofs.add(bearer);
    const trouble = vendor.trouble.shift();
    if (trouble !== undefined) return troubleAnswer(trouble);
    const error = vendor.nextErrors.shift();
    if (error !== undefined) return error;
    rule(request.headers['content-type'] === 'application/json', 400, 'INVALID_ARGUMENT', 'JSON body');
    return deliver(record(JSON.parse(body.toString())));
  }

  function deliver(body: Record<string, unknown>): Answer {
    const bad = (holds: unknown, text: string): void => rule(holds, 400, 'INVALID_ARGUMENT', text);
    // projects.messages.send: { validate_only?, message }; unknown names are refused.
    bad(hasOnly(body, ['message', 'validate_only']), 'unknown field beside message');
    const message = record(body.message);
    bad(
      hasOnly(message, ['token', 'notification', 'data', 'android', 'apns', 'webpush', 'fcm_options']),
      'unknown field of Message',
    );
    const notification = record(message.notification);
    bad(hasOnly(notification, ['title', 'body', 'image']), 'unknown field of Notification');
    const data = record(message.data) as Record<string, string>;
    // data: a map of strings, without the reserved words.
    bad(
      Object.values(data).every((value) => typeof value === 'string'),
      'data holds strings',
    );
    bad(!Object.keys(data).some((key) => /^(from$|message_type$|google|gcm)/.test(key)), 'reserved data key');
    // 4,096 bytes for both together.
    bad(
      Buffer.byteLength(JSON.stringify({ notification: message.notification, data })) <= 4096,
      'message is too big',
    );
    const android = record(message.android);
    bad(
      hasOnly(android, ['collapse_key', 'priority', 'ttl', 'notification']),
      'unknown field of AndroidConfig',
    );
    bad(android.priority === 'HIGH' || android.priority === 'NORMAL', 'AndroidMessagePriority');
    // A protobuf Duration in seconds ending in "s", at most four weeks.
    const ttl = /^(\d+)s$/.exec(String(android.ttl));
    bad(ttl !== null && Number(ttl[1]) <= 2_419_200, 'ttl');
    const shown = record(android.notification);
    bad(hasOnly(shown, ['tag', 'notification_count']), 'unknown field of AndroidNotification');
    const apns = record(message.apns);
    bad(hasOnly(apns, ['headers', 'payload']), 'unknown field of ApnsConfig');
    bad(
      Object.values(record(apns.headers)).every((value) => typeof value === 'string'),
      'apns.headers is a map of strings',
    );
    bad(Buffer.byteLength(String(record(apns.headers)['apns-collapse-id'])) <= 64, 'apns-collapse-id');
    // Apple's rules hold for what is passed on: background is priority 5 and content-available, an alert shows something.
    const { 'apns-push-type': type, 'apns-priority': applePriority } = record(apns.headers);
    const aps = record(record(apns.payload).aps);
    bad(
      type === 'background'
        ? applePriority === '5' && aps['content-available'] === 1
        : type === 'alert' && (aps.alert !== undefined || message.notification !== undefined),
      'apns-push-type',
    );
    bad(
      Object.values(record(record(message.webpush).headers)).every((value) => typeof value === 'string'),
      'webpush.headers',
    );
    const token = String(message.token);
    if (token === vendor.deadToken) return fcmError(404, 'UNREGISTERED', 'Requested entity was not found.');
    bad(token === vendor.goodToken, 'The registration token is not a valid FCM registration token');
    vendor.delivered.push({
      token,
      title: notification.title as string | undefined,
      body: notification.body as string | undefined,
      badge: shown.notification_count as number | undefined,
      collapse: String(android.collapse_key),
      data,
      priority: String(android.priority).toLowerCase(),
      ttlSeconds: Number(ttl?.[1]),
      ...(aps.category === undefined
        ? {}
        : {
            apple: {
              type: String(type),
              priority: String(applePriority),
              category: aps.category,
              alert: aps.alert,
            },
          }),
    });
    return { status: 200, body: { name: `projects/parley-test/messages/${vendor.delivered.length}` } };
  }

  const vendor: FcmVendor = {
    credentials: credentialsWith(mine.privateKey),
    wrongCredentials: credentialsWith(other.privateKey),
    endpoints: { fcm: fcm.origin, oauth: oauthUrl },
    goodToken: 'fcm-device:APA91bGood',
    deadToken: 'fcm-device:APA91bGone',
    maxCollapse: Infinity,
    delivered: [],
    violations: [],
    proofs: new Set(),
    proofLifeMs: 3599_000,
    trouble: [],
    oauthCalls: 0,
    oauthTrouble: [],
    nextErrors: [],
    revoke: () => access.clear(),
    drop: () => (fcm.drop(), oauth.drop()),
    close: async () => void (await Promise.all([fcm.close(), oauth.close()])),
  };
  return vendor;
}

/** A google.rpc.Status with an FcmError detail. */
export function fcmError(status: number, code: string, message: string, details: unknown[] = []): Answer {
  const fcmDetail = { '@type': 'type.googleapis.com/google.firebase.fcm.v1.FcmError', errorCode: code };
  const canonical = status === 404 ? 'NOT_FOUND' : code;
  return {
    status,
    body: { error: { code: status, message, status: canonical, details: [fcmDetail, ...details] } },
  };
}

function credentialsWith(key: KeyObject): Vendor['credentials'] {
  return parsePushCredentials('fcm', {
    type: 'service_account',
    project_id: 'parley-test',
    private_key_id: '0123456789abcdef',
    private_key: key.export({ type: 'pkcs8', format: 'pem' }),
    client_email: email,
    // A key file names the endpoint; an adapter that believed it would call any address a customer types.
    token_uri: 'http://127.0.0.1:9/token',
  });
}
