import { createHash } from 'node:crypto';
import type { RandomBytes } from '../../platform/clock.ts';
import { base32 } from './totp.ts';

/** Secrets that a person or a browser holds, and we keep hashed: they are random and long, so a plain hash is enough. */

/** 256 bits: sessions, invitations, resets. */
export const makeToken = (random: RandomBytes): string => Buffer.from(random(32)).toString('base64url');
export const tokenForm = /^[A-Za-z0-9_-]{43}$/;
export const hashToken = (token: string): Buffer => createHash('sha256').update(token).digest();

const codeCount = 10;

/** 120 bits in six groups of four letters, to be written down. Each works once, instead of the second factor. */
export const makeRecoveryCodes = (random: RandomBytes): string[] =>
  Array.from({ length: codeCount }, () => base32(random(15)).toLowerCase().match(/.{4}/g)!.join('-'));

/** As people type it: in any case, with the dashes or spaces or without. null: it is none. */
export function recoveryCodeHash(typed: string): Buffer | null {
  const plain = typed.replaceAll(/[\s-]/g, '').toLowerCase();
  return /^[a-z2-7]{24}$/.test(plain) ? hashToken(`recovery code ${plain}`) : null;
}
