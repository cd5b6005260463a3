import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Histogram } from '../stats.ts';
import type { Latency } from '../stats.ts';

/** The victim's webhook receiver: how long after its message an event arrives. A message counts in the phase it was written in. */

export interface Hooks {
  port: number;
  phase(): void;
  /** Messages seen so far, each once. */
  seen(): number;
  /** @param missing those that never came: they count as waiting since the attack began, in its phase. */
  report(missing: number): Latency[];
  stop(): void;
}

/** After the warm-up and the baseline. */
const attackPhase = 2;

export async function startHooks(): Promise<Hooks> {
  const begins: number[] = [];
  const phases: Histogram[] = [];
  const seen = new Set<string>();
  const phase = (): void => {
    begins.push(Date.now());
    phases.push(new Histogram());
  };
  phase();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      // As receivers do that are started for each request: every delivery looks the name up again.
      response.writeHead(204, { connection: 'close' }).end();
      const event = JSON.parse(Buffer.concat(chunks).toString()) as {
        data: { message: { id: string; createdAt: string } };
      };
      const { id, createdAt } = event.data.message;
      if (seen.has(id)) return;
      seen.add(id);
      const written = Date.parse(createdAt);
      const at = Math.max(
        0,
        begins.findLastIndex((begin) => begin <= written),
      );
      phases[at]!.record((Date.now() - written) * 1_000);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    phase,
    seen: () => seen.size,
    report(missing) {
      const waited = (Date.now() - begins[attackPhase]!) * 1_000;
      for (let i = 0; i < missing; i++) phases[attackPhase]!.record(waited);
      return phases.map((histogram) => histogram.summary());
    },
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
