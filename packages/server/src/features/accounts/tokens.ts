import { createHash } from 'node:crypto';
import type { RandomBytes } from '../../platform/clock.ts';
import { base32 } from './totp.ts';

/** Secrets that a person or a browser holds and we store as hashes. They are long and random, so a plain hash is enough. */

/** A token of 256 bits, for sessions, invitations and resets. */
export const makeToken = (random: RandomBytes): string => Buffer.from(random(32)).toString('base64url');
export const tokenForm = /^[A-Za-z0-9_-]{43}$/;
export const hashToken = (token: string): Buffer => createHash('sha256').update(token).digest();

const codeCount = 10;

/** Codes of 120 bits in six groups of four letters, for writing down. Each works once, in place of the second factor. */
export const makeRecoveryCodes = (random: RandomBytes): string[] =>
  Array.from({ length: codeCount }, () => base32(random(15)).toLowerCase().match(/.{4}/g)!.join('-'));

/**
 * Accepts a code as people type it: upper or lower case, with or without dashes and spaces. Returns null if it has
 * not the form of a code.
 */
export function recoveryCodeHash(typed: string): Buffer | null {
  const plain = typed.replaceAll(/[\s-]/g, '').toLowerCase();
  return /^[a-z2-7]{24}$/.test(plain) ? hashToken(`recovery code ${plain}`) : null;
}
