import { createCipheriv, createECDH, ECDH, hkdfSync } from 'node:crypto';
import { asObject } from './http.ts';

export interface PushSubscription {
  endpoint: string;
  p256dh: Buffer;
  auth: Buffer;
}

const curve = 'prime256v1';
const recordSize = 4096;
const headerSize = 16 + 4 + 1 + 65;
/** RFC 8030 7.2: a push service accepts 4,096 bytes, which include the header, a delimiter and the tag. */
export const maxPlaintextBytes = recordSize - headerSize - 1 - 16;

/** Parses the JSON of a browser's PushSubscription; undefined if it is not one. The outbound guard judges the endpoint. */
export function parseSubscription(token: string): PushSubscription | undefined {
  try {
    const { endpoint, keys } = asObject(JSON.parse(token));
    const { p256dh, auth } = asObject(keys);
    if (typeof endpoint !== 'string' || typeof p256dh !== 'string' || typeof auth !== 'string')
      return undefined;
    const publicKey = Buffer.from(p256dh, 'base64url');
    const secret = Buffer.from(auth, 'base64url');
    if (!URL.canParse(endpoint) || publicKey.length !== 65 || secret.length !== 16) return undefined;
    ECDH.convertKey(publicKey, curve); // throws where the point is not on the curve
    return { endpoint, p256dh: publicKey, auth: secret };
  } catch {
    return undefined;
  }
}

/** RFC 8291 with one aes128gcm record (RFC 8188). The private key is used for this message only. */
export function encryptPayload(
  plaintext: Buffer,
  subscription: PushSubscription,
  salt: Buffer,
  privateKey: Buffer,
): Buffer {
  const local = createECDH(curve);
  local.setPrivateKey(privateKey);
  const localPublic = local.getPublicKey();
  const keyInfo = Buffer.concat([Buffer.from('WebPush: info\0'), subscription.p256dh, localPublic]);
  const secret = hkdf(local.computeSecret(subscription.p256dh), subscription.auth, keyInfo, 32);
  const contentKey = hkdf(secret, salt, 'Content-Encoding: aes128gcm\0', 16);
  const nonce = hkdf(secret, salt, 'Content-Encoding: nonce\0', 12);
  const cipher = createCipheriv('aes-128-gcm', contentKey, nonce);
  const lastRecord = Buffer.of(2);
  const header = Buffer.alloc(21);
  salt.copy(header);
  header.writeUInt32BE(recordSize, 16);
  header.writeUInt8(localPublic.length, 20);
  return Buffer.concat([
    header,
    localPublic,
    cipher.update(plaintext),
    cipher.update(lastRecord),
    cipher.final(),
    cipher.getAuthTag(),
  ]);
}

function hkdf(secret: Buffer, salt: Buffer, info: Buffer | string, length: number): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, salt, info, length));
}
