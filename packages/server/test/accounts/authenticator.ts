import { createHash, createSign, generateKeyPairSync, randomBytes } from 'node:crypto';

/** A passkey in software (WebAuthn level 3): ES256, no attestation, the person verified; every part open to change. */

const head = (major: number, value: number): Buffer => {
  if (value < 24) return Buffer.of((major << 5) | value);
  if (value < 256) return Buffer.of((major << 5) | 24, value);
  return Buffer.of((major << 5) | 25, value >> 8, value & 255);
};

type Cbor = number | string | Uint8Array | Map<number | string, Cbor> | Cbor[];
/** As much of RFC 8949 as is needed. */
export function cbor(value: Cbor): Buffer {
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value);
  if (typeof value === 'string')
    return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (value instanceof Uint8Array) return Buffer.concat([head(2, value.length), value]);
  if (Array.isArray(value)) return Buffer.concat([head(4, value.length), ...value.map(cbor)]);
  return Buffer.concat([head(5, value.size), ...[...value].flatMap(([k, v]) => [cbor(k), cbor(v)])]);
}

const sha256 = (data: string | Uint8Array): Buffer => createHash('sha256').update(data).digest();
const b64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url');

export interface Changes {
  origin?: string;
  rpId?: string;
  challenge?: string;
  type?: string;
  /** 1 present, 4 verified, 64 with a credential. */
  flags?: number;
  counter?: number;
  statement?: { fmt: string; attStmt: Map<string, Cbor> };
}

export function createAuthenticator(origin: string) {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = publicKey.export({ format: 'jwk' });
  const id = randomBytes(32);
  let counter = 0;
  let userHandle = '';

  const clientData = (type: string, challenge: string, changes: Changes): Buffer =>
    Buffer.from(
      JSON.stringify({
        type: changes.type ?? type,
        challenge: changes.challenge ?? challenge,
        origin: changes.origin ?? origin,
        crossOrigin: false,
      }),
    );
  const authenticatorData = (
    rpId: string,
    flags: number,
    changes: Changes,
    rest = Buffer.alloc(0),
  ): Buffer => {
    const count = Buffer.alloc(4);
    count.writeUInt32BE(changes.counter ?? counter);
    return Buffer.concat([sha256(changes.rpId ?? rpId), Buffer.of(changes.flags ?? flags), count, rest]);
  };

  return {
    id: b64(id),
    /** What `navigator.credentials.create()` would answer. */
    create(options: { challenge: string; rp: { id: string }; user: { id: string } }, changes: Changes = {}) {
      userHandle = options.user.id;
      const key = new Map<number | string, Cbor>([
        ...([
          [1, 2],
          [3, -7],
          [-1, 1],
        ] as [number, number][]),
        [-2, Buffer.from(jwk.x!, 'base64url')],
        [-3, Buffer.from(jwk.y!, 'base64url')],
      ]);
      const credential = Buffer.concat([Buffer.alloc(16), Buffer.of(0, id.length), id, cbor(key)]);
      const statement = changes.statement ?? { fmt: 'none', attStmt: new Map() };
      const attestation = new Map<string, Cbor>([
        ['fmt', statement.fmt],
        ['attStmt', statement.attStmt],
        ['authData', authenticatorData(options.rp.id, 1 | 4 | 64, changes, credential)],
      ]);
      return {
        id: b64(id),
        rawId: b64(id),
        type: 'public-key',
        clientExtensionResults: {},
        response: {
          clientDataJSON: b64(clientData('webauthn.create', options.challenge, changes)),
          attestationObject: b64(cbor(attestation)),
          transports: ['internal', 'made-up'],
        },
      };
    },
    /** What `navigator.credentials.get()` would answer. */
    get(options: { challenge: string; rpId: string }, changes: Changes = {}) {
      counter++;
      const data = clientData('webauthn.get', options.challenge, changes);
      const authData = authenticatorData(options.rpId, 1 | 4, changes);
      const signature = createSign('sha256')
        .update(Buffer.concat([authData, sha256(data)]))
        .sign(privateKey);
      return {
        id: b64(id),
        rawId: b64(id),
        type: 'public-key',
        clientExtensionResults: {},
        response: {
          clientDataJSON: b64(data),
          authenticatorData: b64(authData),
          signature: b64(signature),
          userHandle,
        },
      };
    },
  };
}
