import { argon2, scrypt, timingSafeEqual } from 'node:crypto';
import type { RandomBytes } from '../../platform/clock.ts';
import { Turns } from '../../platform/flow/turns.ts';

/**
 * Passwords at rest: argon2id as PHC strings, which carry their parameters, so that these can be raised later. Older
 * accounts have scrypt hashes without parameters. Outdated hashes of both kinds are replaced at the next sign-in.
 */

const current = { m: 19_456, t: 2, p: 1 };
const saltBytes = 16;
const hashBytes = 32;

/**
 * How many hashes run at once. Each takes 19 MiB and one of the four threads of Node's pool; two threads are left for
 * files and name look-ups.
 */
const width = 2;
/** How many hashes may wait: about two seconds of work at 30 to 60 ms each. Beyond it, sign-ins are refused. */
const maxWaiting = 64;

export interface Passwords {
  hash(password: string): Promise<string>;
  /** Takes as long for an account that does not exist (`stored` is null) as for one that does. */
  verify(password: string, stored: string | null): Promise<{ matches: boolean; outdated: boolean }>;
}

type Parameters = typeof current;

const encode = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64').replace(/=+$/, '');
const phc =
  /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/;

/** Unicode normalization makes the same letters the same password, however they were typed. */
const bytesOf = (password: string): Buffer => Buffer.from(password.normalize('NFKC'));

export function createPasswords(random: RandomBytes): Passwords {
  const turns = new Turns({ slots: width, waiting: maxWaiting });
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => turns.run('', 1, work);
  const dummy = format(current, random(saltBytes), random(hashBytes));

  return {
    hash: (password) =>
      inTurn(async () => {
        const salt = Buffer.from(random(saltBytes));
        return format(current, salt, await derive(password, salt, current, hashBytes));
      }),
    verify: (password, stored) =>
      inTurn(async () => {
        const known = stored ?? dummy;
        const matches = known.startsWith('scrypt$')
          ? await matchesScrypt(password, known)
          : await matchesArgon2(password, known);
        return { matches: matches && stored !== null, outdated: !isCurrent(known) };
      }),
  };
}

const format = ({ m, t, p }: Parameters, salt: Uint8Array, hash: Uint8Array): string =>
  `$argon2id$v=19$m=${m},t=${t},p=${p}$${encode(salt)}$${encode(hash)}`;

const isCurrent = (stored: string): boolean =>
  stored.startsWith(`$argon2id$v=19$m=${current.m},t=${current.t},p=${current.p}$`);

function derive(
  password: string,
  salt: Uint8Array,
  { m, t, p }: Parameters,
  length: number,
): Promise<Buffer> {
  const parameters = { message: bytesOf(password), nonce: salt, memory: m, passes: t, parallelism: p };
  return new Promise((resolve, reject) =>
    argon2('argon2id', { ...parameters, tagLength: length }, (error, key) =>
      error ? reject(error) : resolve(key),
    ),
  );
}

async function matchesArgon2(password: string, stored: string): Promise<boolean> {
  const [, m, t, p, salt, hash] = phc.exec(stored) ?? [];
  if (!salt || !hash) return false;
  const expected = Buffer.from(hash, 'base64');
  const parameters = { m: Number(m), t: Number(t), p: Number(p) };
  const actual = await derive(password, Buffer.from(salt, 'base64'), parameters, expected.length);
  return timingSafeEqual(actual, expected);
}

/** `scrypt$<salt>$<hash>`, with the parameters that Node had by default. */
async function matchesScrypt(password: string, stored: string): Promise<boolean> {
  const [, salt, hash] = stored.split('$');
  if (!salt || !hash) return false;
  const expected = Buffer.from(hash, 'base64');
  const actual = await new Promise<Buffer>((resolve, reject) =>
    scrypt(bytesOf(password), Buffer.from(salt, 'base64'), 32, { N: 16_384, r: 8, p: 1 }, (error, key) =>
      error ? reject(error) : resolve(key),
    ),
  );
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}
