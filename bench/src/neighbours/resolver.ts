import { createSocket } from 'node:dgram';
import { once } from 'node:events';

/** A resolver on loopback that knows one name, and never answers for any other. */

export const knownName = 'victim.test';

/** The answer to a query for the known name; null where there is to be none. RFC 1035, 4.1. */
export function answerTo(query: Buffer): Buffer | null {
  const labels: string[] = [];
  let at = 12;
  while (at < query.length && query[at] !== 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + query[at]!));
    at += 1 + query[at]!;
  }
  if (labels.join('.').toLowerCase() !== knownName || at + 5 > query.length) return null;
  const question = query.subarray(12, at + 5);
  const wantsAddress = query.readUInt16BE(at + 1) === 1;
  const head = Buffer.alloc(12);
  query.copy(head, 0, 0, 2);
  head.writeUInt16BE(0x8180, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(wantsAddress ? 1 : 0, 6);
  // A pointer to the name, A, IN, no time to live, 127.0.0.1.
  const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1]);
  return Buffer.concat([head, question, ...(wantsAddress ? [record] : [])]);
}

export async function startResolver(): Promise<{ address: string; stop(): void }> {
  const socket = createSocket('udp4');
  socket.on('message', (query, { port, address }) => {
    const answer = answerTo(query);
    if (answer) socket.send(answer, port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return { address: `127.0.0.1:${socket.address().port}`, stop: () => void socket.close() };
}
