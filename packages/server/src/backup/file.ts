import { createCipheriv, createDecipheriv, randomBytes, scryptSync } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';

/**
 * The format of a backup file: lines, compressed, and encrypted if there is a passphrase (AES-256-GCM, key by
 * scrypt). It begins with a magic text, one byte that says whether it is encrypted, the salt and the nonce; an
 * encrypted file ends with its tag.
 */

const magic = Buffer.from('PARLEY BACKUP 1\n');
const saltBytes = 16;
const nonceBytes = 12;
const headBytes = magic.length + 1 + saltBytes + nonceBytes;
const tagBytes = 16;

const keyOf = (passphrase: string, salt: Uint8Array): Buffer =>
  scryptSync(passphrase.normalize(), salt, 32, { N: 2 ** 15, r: 8, p: 1, maxmem: 2 ** 26 });

/** The file must not exist yet; only its owner may read it. */
export async function writeLines(
  path: string,
  passphrase: string | undefined,
  lines: AsyncIterable<string>,
): Promise<void> {
  const [salt, nonce] = [randomBytes(saltBytes), randomBytes(nonceBytes)];
  const head = Buffer.concat([magic, Buffer.of(passphrase === undefined ? 0 : 1), salt, nonce]);
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600 });
  file.write(head);
  const text = Readable.from(lines, { objectMode: true }).map((line: string) => `${line}\n`);
  if (passphrase === undefined) await pipeline(text, createGzip(), file);
  else {
    const cipher = createCipheriv('aes-256-gcm', keyOf(passphrase, salt), nonce).setAAD(head);
    await pipeline(
      text,
      createGzip(),
      cipher,
      async function* (parts: AsyncIterable<Buffer>) {
        yield* parts;
        yield cipher.getAuthTag();
      },
      file,
    );
  }
}

/** Yields the lines. They must not be trusted before the last one: an encrypted file is verified at its end. */
export async function* readLines(path: string, passphrase: string | undefined): AsyncGenerator<string> {
  const file = await open(path);
  const head = Buffer.alloc(headBytes);
  await file.read(head, 0, headBytes, 0).finally(() => file.close());
  if (!head.subarray(0, magic.length).equals(magic)) throw new Error(`${path} is not a backup of Parley.`);
  const encrypted = head[magic.length] === 1;
  if (encrypted && passphrase === undefined)
    throw new Error(`${path} is encrypted: set PARLEY_BACKUP_PASSPHRASE.`);
  const { size } = await stat(path);
  const end = encrypted ? size - tagBytes : size;
  const bytes = createReadStream(path, { start: headBytes, end: end - 1 });
  const gunzip = createGunzip();
  const through = encrypted ? [await decipher(path, head, end, passphrase!), gunzip] : [gunzip];
  let failure: unknown;
  const flowing = pipeline([bytes, ...through]).catch((error: unknown) => {
    failure = error;
  });
  try {
    for await (const line of createInterface({ input: gunzip, crlfDelay: Infinity })) yield line;
  } catch (error) {
    failure ??= error;
  }
  await flowing;
  if (failure)
    throw new Error(`${path} is damaged${encrypted ? ', or the passphrase is another' : ''}.`, {
      cause: failure,
    });
}

async function decipher(path: string, head: Buffer, tagAt: number, passphrase: string) {
  const file = await open(path);
  const tag = Buffer.alloc(tagBytes);
  await file.read(tag, 0, tagBytes, tagAt).finally(() => file.close());
  const salt = head.subarray(magic.length + 1, magic.length + 1 + saltBytes);
  return createDecipheriv('aes-256-gcm', keyOf(passphrase, salt), head.subarray(-nonceBytes))
    .setAAD(head)
    .setAuthTag(tag);
}
