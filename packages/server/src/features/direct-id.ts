import { createHash } from 'node:crypto';
import { idPrefixes } from '@parley/protocol';

/**
 * The id of the direct conversation of two users, the same for both orders. It is made of their numbers, so ids that are
 * reused after an erasure get another conversation (conversations#direct).
 */
export function directId(env: number, a: number, b: number): string {
  const pair = a < b ? `${a} ${b}` : `${b} ${a}`;
  const hash = createHash('sha256').update(`direct ${env} ${pair}`).digest();
  return (
    idPrefixes.directConversation +
    BigInt(`0x${hash.toString('hex', 0, 17)}`)
      .toString(32)
      .padStart(26, '0')
      .slice(-26)
  );
}
