import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { Parley } from '../src/index.ts';
import type { ParleyOptions } from '../src/index.ts';

export const secretKey = `sk_live_${'k'.repeat(16)}_${'s'.repeat(32)}`;

export interface Seen {
  method: string;
  url: string;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}
/** `cut`: the connection dies before the answer; `half`: in the middle of its body. */
export type Answer =
  | { status: number; body?: unknown; text?: string; headers?: Record<string, string> }
  | 'cut'
  | 'half'
  | 'silence';

/** A real HTTP server that gives the scripted answers in turn, and a Parley whose waits are only recorded. */
export async function setUp(
  t: TestContext,
  answers: Answer[] | ((seen: Seen) => Answer),
  options: Partial<ParleyOptions> = {},
) {
  const seen: Seen[] = [];
  const waits: number[] = [];
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const one: Seen = {
        method: req.method ?? '',
        url: req.url ?? '',
        headers: req.headers,
        body: Buffer.concat(chunks).toString(),
      };
      seen.push(one);
      const answer = Array.isArray(answers) ? answers[seen.length - 1] : answers(one);
      if (answer === 'silence') return;
      if (answer === undefined || answer === 'cut') {
        req.socket.destroy();
      } else if (answer === 'half') {
        res.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
        res.write('{"id":', () => req.socket.destroy());
      } else {
        res.writeHead(answer.status, { 'request-id': 'req_1', ...answer.headers });
        res.end(answer.text ?? (answer.body === undefined ? '' : JSON.stringify(answer.body)));
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const parley = new Parley({
    secretKey,
    url: `http://127.0.0.1:${port}/`,
    random: () => 0.5,
    sleep: (ms) => {
      waits.push(ms);
      return Promise.resolve();
    },
    ...options,
  });
  return { parley, seen, waits, url: `http://127.0.0.1:${port}` };
}

export const failure = (code: string, type: string, more: object = {}) => ({
  error: { type, code, message: `It is ${code}.`, requestId: 'req_9', ...more },
});
