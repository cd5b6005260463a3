import { createHmac, timingSafeEqual } from 'node:crypto';

/** One-time codes by RFC 6238, with the parameters that every authenticator app assumes: SHA-1, 30 s, 6 digits. */

export const secretBytes = 20;
const stepSeconds = 30;
const digits = 6;
/** The clocks of telephones are slightly off, so this many steps before and after the current one count too. */
const tolerance = 1;

/** RFC 4226: the code of one time step. */
export function codeAt(secret: Uint8Array, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const mac = createHmac('sha1', secret).update(counter).digest();
  const number = mac.readUInt32BE(mac.at(-1)! & 15) & 0x7fff_ffff;
  return String(number % 10 ** digits).padStart(digits, '0');
}

/**
 * Returns the time step that the code belongs to, or null. Steps up to `usedStep` are refused, so that a code that
 * was used once, or an older one, is worth nothing to a person who saw it being typed.
 */
export function matchingStep(
  secret: Uint8Array,
  code: string,
  nowMs: number,
  usedStep: number | null,
): number | null {
  if (!/^\d{6}$/.test(code)) return null;
  const now = Math.floor(nowMs / 1000 / stepSeconds);
  let found: number | null = null;
  // All steps are computed, so that the time taken does not tell which one matched.
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

/** The text that the QR code of an authenticator app holds. */
export function otpauthUri(secret: Uint8Array, email: string): string {
  const query = new URLSearchParams({ secret: base32(secret), issuer: 'Parley' });
  return `otpauth://totp/Parley:${encodeURIComponent(email)}?${query}`;
}
