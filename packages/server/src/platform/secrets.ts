import { createCipheriv, createDecipheriv, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { link, mkdir, open, readFile, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const version = 1;

/** Encrypts secrets for storage: AES-256-GCM under the master key. `context` binds an encrypted value to its place. */
export interface Vault {
  seal(plain: string | Uint8Array, context: string): Buffer;
  open(sealed: Uint8Array, context: string): Buffer;
  /** A keyed hash, for looking something up without storing it. */
  mac(value: string): Buffer;
}

/** @param masterKey a function if the key is known only later, before the first use. */
export function createVault(masterKey: Uint8Array | (() => Uint8Array)): Vault {
  const derive = (purpose: string): (() => Buffer) => {
    let key: Buffer | undefined;
    return () =>
      (key ??= createHmac('sha256', typeof masterKey === 'function' ? masterKey() : masterKey)
        .update(purpose)
        .digest());
  };
  const key = derive('parley seal');
  const macKey = derive('parley mac');
  return {
    seal(plain, context) {
      const iv = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', key(), iv).setAAD(Buffer.from(context));
      const body = Buffer.concat([cipher.update(plain), cipher.final()]);
      return Buffer.concat([Buffer.of(version), iv, cipher.getAuthTag(), body]);
    },
    open(sealed, context) {
      if (sealed[0] !== version || sealed.length < 29) throw new Error('sealed value of an unknown form');
      const decipher = createDecipheriv('aes-256-gcm', key(), sealed.subarray(1, 13))
        .setAAD(Buffer.from(context))
        .setAuthTag(sealed.subarray(13, 29));
      return Buffer.concat([decipher.update(sealed.subarray(29)), decipher.final()]);
    },
    mac: (value) => createHmac('sha256', macKey()).update(value).digest(),
  };
}

export function parseMasterKey(text: string): Buffer {
  const key = Buffer.from(text.trim(), 'base64');
  if (key.length !== 32)
    throw new Error('CHAT_MASTER_KEY must be 32 bytes in base64; make one with: openssl rand -base64 32');
  return key;
}

/**
 * Returns the given key, or the one in the data directory, which only its owner may read. For a store without secrets
 * a key is made. If a store has secrets, a lost file is not replaced, because a new key could read none of them.
 */
export async function loadMasterKey(
  given: string | undefined,
  dataDir: string,
  storeIsNew: boolean,
): Promise<Buffer> {
  if (given) return parseMasterKey(given);
  const path = join(dataDir, 'master.key');
  if (storeIsNew) await makeKeyFile(path);
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return '';
  });
  const key = Buffer.from(text.trim(), 'base64');
  if (key.length === 32) return key;
  throw new Error(
    `${path} ${text === '' ? 'is missing or empty' : 'does not hold 32 bytes in base64'}. It is the key to every secret in this store, and nothing was changed. ` +
      'Put the file back from your backup, or set CHAT_MASTER_KEY to what it held.',
  );
}

/** Writes the file completely or not at all, and only once, because processes may start together. */
async function makeKeyFile(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const whole = `${path}.${randomBytes(6).toString('hex')}`;
  const file = await open(whole, 'wx', 0o600);
  try {
    await file.writeFile(`${randomBytes(32).toString('base64')}\n`);
    await file.sync();
    await link(whole, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await file.close();
    await unlink(whole);
  }
}

/** Constant-time comparison of two strings of any length. */
export function sameString(a: string, b: string): boolean {
  const digest = (s: string) => createHmac('sha256', 'compare').update(s).digest();
  return timingSafeEqual(digest(a), digest(b));
}
