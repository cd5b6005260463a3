import { createCipheriv, createDecipheriv, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { mkdir, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';

const version = 1;

/** Secrets at rest: AES-256-GCM under the master key; `context` binds a sealed value to its place. */
export interface Vault {
  seal(plain: string | Uint8Array, context: string): Buffer;
  open(sealed: Uint8Array, context: string): Buffer;
  /** A keyed hash, for looking a thing up without keeping it. */
  mac(value: string): Buffer;
}

export function createVault(masterKey: Uint8Array): Vault {
  const key = createHmac('sha256', masterKey).update('parley seal').digest();
  const macKey = createHmac('sha256', masterKey).update('parley mac').digest();
  return {
    seal(plain, context) {
      const iv = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context));
      const body = Buffer.concat([cipher.update(plain), cipher.final()]);
      return Buffer.concat([Buffer.of(version), iv, cipher.getAuthTag(), body]);
    },
    open(sealed, context) {
      if (sealed[0] !== version || sealed.length < 29) throw new Error('sealed value of an unknown form');
      const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(1, 13))
        .setAAD(Buffer.from(context))
        .setAuthTag(sealed.subarray(13, 29));
      return Buffer.concat([decipher.update(sealed.subarray(29)), decipher.final()]);
    },
    mac: (value) => createHmac('sha256', macKey).update(value).digest(),
  };
}

export function parseMasterKey(text: string): Buffer {
  const key = Buffer.from(text.trim(), 'base64');
  if (key.length !== 32)
    throw new Error('CHAT_MASTER_KEY must be 32 bytes in base64; make one with: openssl rand -base64 32');
  return key;
}

/** The key given, or the one kept in the data directory (made on the first start, readable by its owner alone). */
export async function loadMasterKey(given: string | undefined, dataDir: string): Promise<Buffer> {
  if (given) return parseMasterKey(given);
  const path = join(dataDir, 'master.key');
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  try {
    const file = await open(path, 'wx', 0o600);
    try {
      await file.writeFile(`${randomBytes(32).toString('base64')}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return parseMasterKey(await readFile(path, 'utf8'));
}

/** Constant-time comparison of two strings of any length. */
export function sameString(a: string, b: string): boolean {
  const digest = (s: string) => createHmac('sha256', 'compare').update(s).digest();
  return timingSafeEqual(digest(a), digest(b));
}
