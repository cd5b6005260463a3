import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { TestSocket } from '../support/socket.ts';

export const text = (cid: string, text = 'hello', more: object = {}) => ({
  cid,
  clientMsgId: randomUUID(),
  text,
  ...more,
});

/** Every event of the conversation from the first one seen, none missing, none twice, in order. */
export function assertContiguous(socket: TestSocket, cid: string): void {
  const seqs = socket.events(cid).map((f) => f.seq as number);
  assert.ok(seqs.length > 0, 'no events at all');
  assert.deepEqual(
    seqs,
    seqs.map((_, i) => seqs[0]! + i),
  );
}
