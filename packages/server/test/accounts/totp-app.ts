import { codeAt } from '../../src/features/accounts/totp.ts';

/** An authenticator app: reads the secret from the URI and shows the code of a moment. */
export function totpApp(uri: string): (atMs?: number) => string {
  const text = new URL(uri).searchParams.get('secret')!;
  const bits = [...text].map((c) =>
    'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0'),
  );
  const secret = Buffer.from(
    bits
      .join('')
      .match(/.{8}/g)!
      .map((b) => parseInt(b, 2)),
  );
  return (atMs = Date.now()) => codeAt(secret, Math.floor(atMs / 30_000));
}
