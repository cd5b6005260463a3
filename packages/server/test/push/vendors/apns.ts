import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import {
  createServer,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { parsePushCredentials } from '../../../src/platform/push/credentials.ts';
import { answerOf, record, rule, troubleAnswer, verifyJwt, type Answer, type Vendor } from './vendor.ts';

const keyId = 'ABC123DEFG';
const teamId = 'DEF123GHIJ';
const topic = 'com.example.chat';

export interface ApnsVendor extends Vendor {
  sessions: Set<Http2Session>;
  sessionsSeen: number;
  /** From now on Apple calls every token that it saw so far expired; with `allExpired` any token. */
  expireTokens(): void;
  allExpired: boolean;
  /** Ends the connection as Apple does before maintenance: GOAWAY, then no new streams. */
  goaway(): void;
  /** Leaves requests without an answer while set; `release` answers the ones kept. */
  hold: boolean;
  voipToken: string;
  held: (() => void)[];
  /** Runs when a request begins to be held. */
  onHeld: () => void;
}

export async function startApns(now: () => number): Promise<ApnsVendor> {
  const mine = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const expired = new Set<string>();
  // Apple speaks HTTP/2 only; this server does too, without TLS.
  const server = createServer();
  server.on('session', (session) => {
    vendor.sessions.add(session);
    vendor.sessionsSeen += 1;
    session.on('close', () => vendor.sessions.delete(session));
    session.on('error', () => {});
  });
  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    const chunks: Buffer[] = [];
    stream.on('error', () => {});
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => {
      const respond = (): void => {
        const answer = answerOf(
          () => handle(headers, Buffer.concat(chunks)),
          ({ status, code, message }) => {
            // A wrong signature is what wrong credentials look like: no fault of the adapter.
            if (message !== 'signature') vendor.violations.push(message);
            return { status, body: { reason: code } };
          },
        );
        stream.respond({ ':status': answer.status, ...answer.headers });
        stream.end(answer.body === undefined ? undefined : JSON.stringify(answer.body));
      };
      if (!vendor.hold) return respond();
      vendor.held.push(respond);
      // Whoever gave up no longer waits.
      stream.on('close', () => {
        if (vendor.held.includes(respond)) vendor.held.splice(vendor.held.indexOf(respond), 1);
      });
      vendor.onHeld();
    });
  });

  function handle(headers: IncomingHttpHeaders, body: Buffer): Answer {
    rule(headers[':method'] === 'POST', 405, 'MethodNotAllowed', 'method');
    const token = /^\/3\/device\/([0-9a-f]+)$/.exec(headers[':path'] ?? '')?.[1];
    rule(token !== undefined, 404, 'BadPath', 'path is /3/device/<hex token>');
    // "Establishing a token-based connection": bearer, ES256, kid, iss, iat.
    const bearer = /^bearer (.+)$/.exec(headers.authorization ?? '')?.[1] ?? '';
    rule(bearer !== '', 403, 'MissingProviderToken', 'authorization: bearer <token>');
    const jwt = verifyJwt(bearer, 'ES256', mine.publicKey);
    rule(jwt !== undefined, 403, 'InvalidProviderToken', 'signature');
    rule(jwt.header.kid === keyId && jwt.claims.iss === teamId, 403, 'InvalidProviderToken', 'kid and iss');
    // "APNs rejects any request whose token contains a timestamp that is more than one hour old."
    const age = now() / 1000 - Number(jwt.claims.iat);
    rule(age > -60 && age < 3600, 403, 'ExpiredProviderToken', 'iat within the hour');
    // "ExpiredProviderToken: The provider token is stale and a new token should be generated." Apple's clock decides.
    vendor.proofs.add(bearer);
    if (vendor.allExpired || expired.has(bearer))
      return { status: 403, body: { reason: 'ExpiredProviderToken' } };
    const trouble = vendor.trouble.shift();
    if (trouble !== undefined) return troubleAnswer(trouble, { reason: 'ServiceUnavailable' });
    return deliver(token, headers, body);
  }

  function deliver(token: string, headers: IncomingHttpHeaders, body: Buffer): Answer {
    const bad = (holds: unknown, code: string): void => rule(holds, 400, code, code);
    // With token authentication the topic is required and is the app's bundle id.
    bad(headers['apns-topic'] !== undefined, 'MissingTopic');
    // "voip: … set the apns-topic header field to your app's bundle ID with .voip appended to the end."
    const type = headers['apns-push-type'];
    const voip = type === 'voip';
    bad(headers['apns-topic'] === (voip ? `${topic}.voip` : topic), 'TopicDisallowed');
    // "The value of this header can't exceed 64 bytes."
    bad(Buffer.byteLength(String(headers['apns-collapse-id'] ?? '')) <= 64, 'BadCollapseId');
    // Required from iOS 13 and watchOS 6 on.
    bad(type === 'alert' || type === 'background' || voip, 'InvalidPushType');
    // 10 or 5 (1 is for devices' own power); "it's an error to use 10 for a background notification".
    const priority = headers['apns-priority'];
    bad(priority === '5' || (priority === '10' && type !== 'background'), 'BadPriority');
    // A UNIX time in seconds; 0 tries once.
    const expiration = Number(headers['apns-expiration']);
    bad(
      Number.isInteger(expiration) && (expiration === 0 || expiration >= now() / 1000 - 1),
      'BadExpirationDate',
    );
    rule(body.length <= 4096, 413, 'PayloadTooLarge', '4 KB');
    bad(body.length > 0, 'PayloadEmpty');
    const { aps, ...data } = JSON.parse(body.toString()) as Record<string, unknown>;
    const { alert, badge, category } = record(aps);
    bad(
      voip || (type === 'alert' ? alert !== undefined : record(aps)['content-available'] === 1),
      'aps does not fit apns-push-type',
    );
    // A VoIP token is another one than that of the app; each goes with its own topic.
    if (voip !== (token === vendor.voipToken))
      return { status: 400, body: { reason: 'DeviceTokenNotForTopic' } };
    bad(badge === undefined || Number.isInteger(badge), 'badge is a number');
    // A token that ended: 410 with the time. "BadDeviceToken: The specified device token is invalid. Verify that the
    // request contains a valid token and that the token matches the environment."
    if (token === vendor.deadToken)
      return { status: 410, body: { reason: 'Unregistered', timestamp: now() } };
    if (token !== vendor.goodToken && !voip) return { status: 400, body: { reason: 'BadDeviceToken' } };
    vendor.delivered.push({
      token,
      title: record(alert).title as string | undefined,
      body: record(alert).body as string | undefined,
      badge: badge as number | undefined,
      collapse: String(headers['apns-collapse-id']),
      data: data as Record<string, string>,
      priority: priority === '10' ? 'high' : 'normal',
      ttlSeconds: expiration === 0 ? 0 : expiration - Math.floor(now() / 1000),
      ...(voip || category !== undefined
        ? {
            apple: {
              type: String(type),
              priority: String(priority),
              topic: String(headers['apns-topic']),
              category,
              alert,
            },
          }
        : {}),
    });
    return { status: 200 };
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const vendor: ApnsVendor = {
    credentials: credentialsWith(mine.privateKey),
    wrongCredentials: credentialsWith(other.privateKey),
    endpoints: { apns: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
    goodToken: 'a1'.repeat(32),
    deadToken: 'd0'.repeat(32),
    voipToken: 'f1'.repeat(32),
    maxCollapse: 64,
    delivered: [],
    violations: [],
    proofs: new Set(),
    proofLifeMs: 3600_000,
    trouble: [],
    sessions: new Set(),
    sessionsSeen: 0,
    hold: false,
    held: [],
    onHeld: () => {},
    allExpired: false,
    expireTokens: () => vendor.proofs.forEach((proof) => expired.add(proof)),
    goaway: () => vendor.sessions.forEach((session) => session.goaway()),
    drop: () => vendor.sessions.forEach((session) => session.destroy()),
    close: () =>
      new Promise((resolve) => {
        vendor.drop();
        server.close(() => resolve());
      }),
  };
  return vendor;
}

function credentialsWith(key: KeyObject): Vendor['credentials'] {
  const privateKey = key.export({ type: 'pkcs8', format: 'pem' });
  return parsePushCredentials('apns', { keyId, teamId, privateKey, topic });
}
