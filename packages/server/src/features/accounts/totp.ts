import { createHmac, timingSafeEqual } from 'node:crypto';

/** RFC 6238 with what every authenticator app assumes: SHA-1, 30 s, 6 digits. */

export const secretBytes = 20;
const stepSeconds = 30;
const digits = 6;
/** Clocks of telephones are off by a little: the step before and the one after count too. */
const tolerance = 1;

export const isTotpForm = (code: string): boolean => /^\d{6}$/.test(code);

/** RFC 4226: the code of one step. */
export function codeAt(secret: Uint8Array, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const mac = createHmac('sha1', secret).update(counter).digest();
  const number = mac.readUInt32BE(mac.at(-1)! & 15) & 0x7fff_ffff;
  return String(number % 10 ** digits).padStart(digits, '0');
}

/**
 * The step that the code is of, or null. Steps up to `usedStep` are refused: a code that was used once, or one older than
 * it, is worth nothing to whoever saw it being typed.
 */
export function matchingStep(
  secret: Uint8Array,
  code: string,
  nowMs: number,
  usedStep: number | null,
): number | null {
  if (!isTotpForm(code)) return null;
  const now = Math.floor(nowMs / 1000 / stepSeconds);
  let found: number | null = null;
  // All of them are computed, whichever matches.
  for (let step = now - tolerance; step <= now + tolerance; step++)
    if (timingSafeEqual(Buffer.from(codeAt(secret, step)), Buffer.from(code)) && step > (usedStep ?? -1))
      found = step;
  return found;
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** RFC 4648, without padding. */
export function base32(bytes: Uint8Array): string {
  let out = '';
  let bits = 0;
  let value = 0;
  for (const byte of bytes) {
    value = (value << 8) | byte;
    bits += 8;
    for (; bits >= 5; bits -= 5) out += alphabet[(value >>> (bits - 5)) & 31];
    value &= (1 << bits) - 1;
  }
  return bits > 0 ? out + alphabet[(value << (5 - bits)) & 31] : out;
}

/** What the QR code holds. */
export function otpauthUri(secret: Uint8Array, email: string): string {
  const query = new URLSearchParams({ secret: base32(secret), issuer: 'Parley' });
  return `otpauth://totp/Parley:${encodeURIComponent(email)}?${query}`;
}
