import { createCipheriv, createDecipheriv, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { link, mkdir, open, readFile, rename, rm, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const version = 1;
export const keyFile = 'master.key';
export const previousKeyFile = 'master.key.previous';

/** Encrypts secrets for storage: AES-256-GCM under the master key. `context` binds an encrypted value to its place. */
export interface Vault {
  seal(plain: string | Uint8Array, context: string): Buffer;
  open(sealed: Uint8Array, context: string): Buffer;
  /** The value sealed with the current key; null if it is already. */
  reseal(sealed: Uint8Array, context: string): Buffer | null;
  /** A keyed hash, for looking something up without storing it. It stays the same when the master key is rotated. */
  mac(value: string): Buffer;
  /** Keyed hashes for what this service signs: the first signs, and any of them proves. They change with the master key. */
  signatures(value: string): Buffer[];
}

export interface MasterKeys {
  /** Seals, and opens. */
  current: Uint8Array;
  /** Open too, while the master key is rotated. */
  others: readonly Uint8Array[];
  /** The key of `mac`. */
  mac: Uint8Array;
}

const derived = (key: Uint8Array, purpose: string): Buffer =>
  createHmac('sha256', key).update(purpose).digest();

/** The key of `mac` in a store whose master key was never rotated. */
export const macKeyOf = (masterKey: Uint8Array): Buffer => derived(masterKey, 'parley mac');

/** Tells keys apart in messages and names of connections, and says nothing else about them. */
export const fingerprintOf = (masterKey: Uint8Array): string =>
  derived(masterKey, 'parley fingerprint').subarray(0, 6).toString('hex');

/** @param given a function if the keys are known only later, before the first use. */
export function createVault(given: Uint8Array | (() => MasterKeys)): Vault {
  const prepare = () => {
    const { current, others, mac } =
      typeof given === 'function' ? given() : { current: given, others: [], mac: macKeyOf(given) };
    const all = [current, ...others];
    return { mac, seal: all.map((key) => derived(key, 'parley seal')), sign: all.map(macKeyOf) };
  };
  let prepared: ReturnType<typeof prepare> | undefined;
  const keys = () => (prepared ??= prepare());

  const seal: Vault['seal'] = (plain, context) => {
    const iv = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', keys().seal[0]!, iv).setAAD(Buffer.from(context));
    const body = Buffer.concat([cipher.update(plain), cipher.final()]);
    return Buffer.concat([Buffer.of(version), iv, cipher.getAuthTag(), body]);
  };
  /** Opens with the first key that fits, and says which one that is. */
  const openWith = (sealed: Uint8Array, context: string): { plain: Buffer; index: number } => {
    if (sealed[0] !== version || sealed.length < 29) throw new Error('sealed value of an unknown form');
    let failed: unknown;
    for (const [index, key] of keys().seal.entries())
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(1, 13))
          .setAAD(Buffer.from(context))
          .setAuthTag(sealed.subarray(13, 29));
        return { plain: Buffer.concat([decipher.update(sealed.subarray(29)), decipher.final()]), index };
      } catch (error) {
        failed = error;
      }
    throw failed;
  };
  const hash = (key: Uint8Array, value: string): Buffer => createHmac('sha256', key).update(value).digest();
  return {
    seal,
    open: (sealed, context) => openWith(sealed, context).plain,
    reseal: (sealed, context) => {
      const { plain, index } = openWith(sealed, context);
      return index === 0 ? null : seal(plain, context);
    },
    mac: (value) => hash(keys().mac, value),
    signatures: (value) => keys().sign.map((key) => hash(key, value)),
  };
}

export function parseMasterKey(text: string, setting = 'CHAT_MASTER_KEY'): Buffer {
  const key = Buffer.from(text.trim(), 'base64');
  if (key.length !== 32)
    throw new Error(`${setting} must be 32 bytes in base64; make one with: openssl rand -base64 32`);
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
  const path = join(dataDir, keyFile);
  if (storeIsNew) await makeKeyFile(path);
  const text = (await keptIn(path)) ?? '';
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
  await withNewFile(path, async (whole) => {
    await link(whole, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    await unlink(whole);
  });
}

/** @param place puts the file, which holds a new key and is on the disk, where it belongs. */
async function withNewFile(path: string, place: (whole: string) => Promise<void>): Promise<void> {
  const whole = `${path}.${randomBytes(6).toString('hex')}`;
  const file = await open(whole, 'wx', 0o600);
  try {
    await file.writeFile(`${newMasterKey()}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await place(whole);
}

export const newMasterKey = (): string => randomBytes(32).toString('base64');

const previousPath = (dataDir: string): string => join(dataDir, previousKeyFile);
const keptIn = (path: string): Promise<string | undefined> =>
  readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });

/**
 * Puts a new key into the data directory. The one that was there becomes `master.key.previous`, which opens what it sealed
 * until the rotation is finished. A call that was interrupted may be repeated.
 */
export async function replaceKeyFile(dataDir: string): Promise<void> {
  const [path, previous] = [join(dataDir, keyFile), previousPath(dataDir)];
  const [key, older] = [await keptIn(path), await keptIn(previous)];
  if (key === undefined) throw new Error(`${path} does not exist, so there is no key to replace.`);
  if (older !== undefined && older !== key)
    throw new Error(`${previous} exists: finish that rotation first, with parley master-key rotate.`);
  if (older === undefined) await link(path, previous);
  await withNewFile(path, (whole) => rename(whole, path));
}

/** The key that the file in the data directory had before; undefined outside of a rotation. */
export async function loadPreviousKey(dataDir: string): Promise<Buffer | undefined> {
  const text = await keptIn(previousPath(dataDir));
  return text === undefined ? undefined : parseMasterKey(text, previousPath(dataDir));
}

export const dropPreviousKey = (dataDir: string): Promise<void> => rm(previousPath(dataDir), { force: true });

/** Constant-time comparison of two strings of any length. */
export function sameString(a: string, b: string): boolean {
  const digest = (s: string) => createHmac('sha256', 'compare').update(s).digest();
  return timingSafeEqual(digest(a), digest(b));
}
