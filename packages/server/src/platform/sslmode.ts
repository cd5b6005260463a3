export type TlsLevel = 'off' | 'unverified' | 'verified';

/** The values of `sslmode` that are understood, for messages. */
export const sslModes = 'disable, require, verify-ca or verify-full';

/**
 * What `sslmode` means in every database URL, ours and customers': as in libpq, `require` encrypts and verifies nothing unless a root
 * certificate is given. Where a certificate is verified, so is the name in it. Undefined if the mode is not known.
 */
export function tlsOfMode(mode: string, rootGiven: boolean): TlsLevel | undefined {
  switch (mode.toLowerCase().replaceAll('_', '-')) {
    case 'disable':
    case 'disabled':
      return 'off';
    case 'require':
    case 'required':
      return rootGiven ? 'verified' : 'unverified';
    case 'verify-ca':
    case 'verify-full':
    case 'verify-identity':
      return 'verified';
    default:
      return undefined;
  }
}
