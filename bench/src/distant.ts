import { once } from 'node:events';
import { connect as dial, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';

export const distanceMs = 1;

/** A port from which everything takes a while to the other, in each direction, as to a database in the next building. */
export async function distant(port: number): Promise<{ port: number; close(): void }> {
  const server = createServer((near) => {
    const far = dial({ host: '127.0.0.1', port });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.setNoDelay(true);
      from.on('data', (chunk: Buffer) => setTimeout(() => to.write(chunk), distanceMs));
      from.once('close', () => setTimeout(() => to.destroy(), distanceMs));
      from.on('error', () => undefined);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, close: () => void server.close() };
}
