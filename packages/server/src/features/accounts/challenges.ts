import { timingSafeEqual } from 'node:crypto';
import { ApiError } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { Vault } from '../../platform/secrets.ts';
import type { ControlServices } from '../context.ts';
import { keepChallenge } from './sql/passkeys.ts';

/**
 * Challenges are what a passkey signs. A challenge proves itself (it holds random bytes, its end, and a keyed hash
 * over both and its purpose), so handing one out needs no row. A used challenge is kept as a row until it ends, so
 * that it works only once.
 */

type Tools = Pick<ControlServices, 'clock' | 'ids' | 'vault'>;

export const challengeMs = 5 * 60_000;
const nonceBytes = 16;
const proofBytes = 16;
const size = nonceBytes + 8 + proofBytes;

/** The first is that of a new challenge; any of them proves one. */
const proofs = (vault: Vault, purpose: string, head: Uint8Array): Buffer[] =>
  vault
    .signatures(`challenge for ${purpose} ${Buffer.from(head).toString('base64url')}`)
    .map((signature) => signature.subarray(0, proofBytes));

export function makeChallenge({ clock, ids, vault }: Tools, purpose: string): Uint8Array<ArrayBuffer> {
  const head = Buffer.alloc(nonceBytes + 8);
  head.set(ids.random(nonceBytes));
  head.writeBigUInt64BE(BigInt(clock.now() + challengeMs), nonceBytes);
  return new Uint8Array(Buffer.concat([head, proofs(vault, purpose, head)[0]!]));
}

function endOf(challenge: string): { head: Buffer; given: Buffer; endsAt: number } | null {
  const bytes = Buffer.from(challenge, 'base64url');
  if (bytes.length !== size) return null;
  const head = bytes.subarray(0, nonceBytes + 8);
  return { head, given: bytes.subarray(nonceBytes + 8), endsAt: Number(head.readBigUInt64BE(nonceBytes)) };
}

/** @param challenge in base64url. */
export function isChallenge({ clock, vault }: Tools, purpose: string, challenge: string): boolean {
  const parts = endOf(challenge);
  return (
    parts !== null &&
    proofs(vault, purpose, parts.head).some((one) => timingSafeEqual(parts.given, one)) &&
    clock.now() < parts.endsAt
  );
}

/** Uses up a challenge that `isChallenge` accepted. */
export async function useChallenge(tx: Queryable, challenge: string): Promise<void> {
  const { head, endsAt } = endOf(challenge)!;
  if (!(await keepChallenge(tx, head, new Date(endsAt)))) throw new ApiError('invalid_credentials');
}
