import { createDecipheriv, createECDH, createPublicKey, hkdfSync } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { parsePushCredentials } from '../../../src/platform/push/credentials.ts';
import { record, rule, serve, troubleAnswer, verifyJwt, type Answer, type Vendor } from './vendor.ts';

export interface WebpushVendor extends Vendor {
  /** Bodies longer than this are answered with 413. */
  maxBodyBytes: number;
  /** A good token of its own. */
  tokenOf(name: string): string;
}

export async function startWebpush(now: () => number): Promise<WebpushVendor> {
  const vapid = createECDH('prime256v1');
  vapid.generateKeys();
  const other = createECDH('prime256v1');
  other.generateKeys();
  // The browser's side of the subscription.
  const browser = createECDH('prime256v1');
  browser.generateKeys();
  const auth = Buffer.from('0123456789abcdef');

  const server = await serve(handle, ({ status, code, message }) => {
    if (code !== 'wrong_key' && code !== 'too_large') vendor.violations.push(message);
    return { status };
  });

  function handle(request: IncomingMessage, body: Buffer): Answer {
    const bad = (holds: unknown, text: string): void => rule(holds, 400, 'bad', text);
    bad(request.method === 'POST', 'RFC 8030 5: POST to the push resource');
    const { authorization = '', ttl, urgency, topic } = request.headers;
    // RFC 8292 3: "vapid" with t and k; the subscription is bound to one key (4.2).
    const parts = /^vapid t=([\w.-]+), k=([\w-]+)$/.exec(authorization);
    rule(parts !== null, 401, 'bad', 'RFC 8292 3: authorization');
    rule(parts[2] === vapid.getPublicKey('base64url'), 403, 'wrong_key', 'RFC 8292 4.2: another key');
    const jwt = verifyJwt(
      parts[1] ?? '',
      'ES256',
      createPublicKey({ format: 'jwk', key: jwk(vapid.getPublicKey()) }),
    );
    rule(jwt !== undefined, 403, 'bad', 'RFC 8292 2: ES256 signature');
    const { aud, exp, sub } = jwt.claims;
    rule(aud === server.origin, 403, 'bad', 'RFC 8292 2: aud is the origin of the push resource');
    const ahead = Number(exp) - now() / 1000;
    rule(ahead > 0 && ahead <= 24 * 3600, 403, 'bad', 'RFC 8292 2: exp is at most 24 hours ahead');
    rule(sub === 'mailto:ops@example.com', 403, 'bad', 'RFC 8292 2.1: sub is a contact');
    vendor.proofs.add(parts[1] ?? '');
    const trouble = vendor.trouble.shift();
    if (trouble !== undefined) return troubleAnswer(trouble);
    bad(/^\d+$/.test(String(ttl)), 'RFC 8030 5.2: TTL is required, in seconds');
    bad(['very-low', 'low', 'normal', 'high'].includes(String(urgency)), 'RFC 8030 5.3: Urgency');
    bad(/^[\w-]{1,32}$/.test(String(topic)), 'RFC 8030 5.4: Topic is at most 32 base64url characters');
    bad(request.headers['content-encoding'] === 'aes128gcm', 'RFC 8291 4: aes128gcm');
    bad(body.length <= 4096, 'RFC 8030 7.2: services need not take more than 4,096 bytes');
    rule(body.length <= vendor.maxBodyBytes, 413, 'too_large', 'this service takes less');
    // RFC 8030 7.3: an expired or unknown subscription is 404 or 410.
    if (request.url === '/push/gone') return { status: 410 };
    const good = /^\/push\/(good(?:\/[\w-]+)?)$/.exec(request.url ?? '')?.[1];
    if (good === undefined) return { status: 404 };
    const {
      title,
      body: text,
      badge,
      tag,
      data,
    } = record(JSON.parse(decrypt(body, browser.getPrivateKey(), auth).toString()));
    vendor.delivered.push({
      token: subscription(good),
      title: (title as string) || undefined,
      body: (text as string) || undefined,
      badge: badge as number,
      collapse: String(topic),
      data: data as Record<string, string>,
      priority: String(urgency),
      ttlSeconds: Number(ttl),
    });
    bad(typeof tag === 'string', 'the service worker replaces by tag');
    return { status: 201 };
  }

  function subscription(name: string): string {
    return JSON.stringify({
      endpoint: `${server.origin}/push/${name}`,
      expirationTime: null,
      keys: { p256dh: browser.getPublicKey('base64url'), auth: auth.toString('base64url') },
    });
  }

  const credentialsWith = (pair: typeof vapid): Vendor['credentials'] =>
    parsePushCredentials('webpush', {
      publicKey: pair.getPublicKey('base64url'),
      // Node leaves out leading zeros.
      privateKey: Buffer.concat([Buffer.alloc(32), pair.getPrivateKey()])
        .subarray(-32)
        .toString('base64url'),
      subject: 'mailto:ops@example.com',
    });

  const vendor: WebpushVendor = {
    credentials: credentialsWith(vapid),
    wrongCredentials: credentialsWith(other),
    endpoints: {},
    goodToken: subscription('good'),
    deadToken: subscription('gone'),
    maxCollapse: 32,
    delivered: [],
    violations: [],
    proofs: new Set(),
    proofLifeMs: 24 * 3600_000,
    trouble: [],
    maxBodyBytes: 4096,
    tokenOf: (name) => subscription(`good/${name}`),
    drop: server.drop,
    close: server.close,
  };
  return vendor;
}

/** RFC 8291 3.4 and RFC 8188 2, from the browser's side; throws where anything does not fit. */
export function decrypt(message: Buffer, privateKey: Buffer, auth: Buffer): Buffer {
  const salt = message.subarray(0, 16);
  const recordSize = message.readUInt32BE(16);
  const keyLength = message.readUInt8(20);
  const senderKey = message.subarray(21, 21 + keyLength);
  const sealed = message.subarray(21 + keyLength);
  rule(
    keyLength === 65 && sealed.length <= recordSize,
    400,
    'bad',
    'RFC 8291 4: keyid is the sender key, one record',
  );
  const receiver = createECDH('prime256v1');
  receiver.setPrivateKey(privateKey);
  const derive = (secret: Buffer, with_: Buffer, info: Buffer, length: number): Buffer =>
    Buffer.from(hkdfSync('sha256', secret, with_, info, length));
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), receiver.getPublicKey(), senderKey]);
  const secret = derive(receiver.computeSecret(senderKey), auth, info, 32);
  const key = derive(secret, salt, Buffer.from('Content-Encoding: aes128gcm\0'), 16);
  const nonce = derive(secret, salt, Buffer.from('Content-Encoding: nonce\0'), 12);
  const decipher = createDecipheriv('aes-128-gcm', key, nonce).setAuthTag(sealed.subarray(-16));
  const padded = Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()]);
  const end = padded.findLastIndex((byte) => byte !== 0);
  rule(padded[end] === 2, 400, 'bad', 'RFC 8188 2: the last record ends with the delimiter 2');
  return padded.subarray(0, end);
}

function jwk(point: Buffer): { kty: string; crv: string; x: string; y: string } {
  return {
    kty: 'EC',
    crv: 'P-256',
    x: point.subarray(1, 33).toString('base64url'),
    y: point.subarray(33).toString('base64url'),
  };
}
