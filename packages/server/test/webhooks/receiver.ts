import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';

/** A real receiver of webhooks on loopback. It keeps what arrives; `answer` decides what it says. */

export interface Received {
  path: string;
  headers: Record<string, string>;
  raw: string;
  id: string;
  type: string;
  createdAt: string;
  env: string;
  data: any;
  at: number;
}

export type Answer = (received: Received, res: ServerResponse) => void;

export interface Receiver {
  url: string;
  received: Received[];
  answer: Answer;
  /** Resolves with the first `count` deliveries that fit, once they are there. */
  wait(count: number, fits?: (r: Received) => boolean): Promise<Received[]>;
  /** One delivery of a type, checked with the standardwebhooks package. */
  next(type: string, fits?: (r: Received) => boolean): Promise<Received>;
  close(): Promise<void>;
}

export const ok: Answer = (_, res) => res.writeHead(204).end();
export const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (_, res) =>
    res.writeHead(code, headers).end();
/** Never answers. */
export const silent: Answer = () => undefined;

export async function startReceiver(port = 0): Promise<Receiver> {
  const waiting = new Set<() => void>();
  const receiver: Receiver = {
    url: '',
    received: [],
    answer: ok,
    wait: (count, fits = () => true) =>
      new Promise((resolve) => {
        const look = (): void => {
          const found = receiver.received.filter(fits);
          if (found.length < count) return;
          waiting.delete(look);
          resolve(found.slice(0, count));
        };
        waiting.add(look);
        look();
      }),
    next: async (type, fits = () => true) => (await receiver.wait(1, (r) => r.type === type && fits(r)))[0]!,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  const server = createServer((req: IncomingMessage, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const raw = Buffer.concat(chunks).toString();
      const received: Received = {
        ...(JSON.parse(raw) as Received),
        path: req.url!,
        headers: req.headers as Record<string, string>,
        raw,
        at: Date.now(),
      };
      receiver.received.push(received);
      receiver.answer(received, res);
      for (const look of [...waiting]) look();
    });
    req.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return receiver;
}

/** Throws unless the signature fits the secret. */
export const verify = (secret: string, received: Received): unknown =>
  new Webhook(secret).verify(received.raw, received.headers);
