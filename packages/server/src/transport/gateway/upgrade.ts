import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { realtime } from '@parley/protocol';

/** One for all: most name none. */
const nothingNamed: string[] = [];

/** SPEC 4: the socket is at /v1 and speaks chat.v1. Returns the environments that the URL names, or why it is refused. */
export function checkUpgrade(
  request: IncomingMessage,
): { named: string[] } | { status: number; why: string } {
  let url: URL;
  try {
    url = new URL(request.url ?? '/', 'http://parley');
  } catch {
    return { status: 400, why: 'The address is malformed.' };
  }
  if (url.pathname !== '/v1' && url.pathname !== '/v1/') return { status: 404, why: 'The socket is at /v1.' };
  const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((p) => p.trim());
  if (!offered.includes(realtime.subprotocol))
    return { status: 400, why: `Offer the subprotocol ${realtime.subprotocol}.` };
  const named = url.searchParams.getAll('env');
  return { named: named.length === 0 ? nothingNamed : named };
}

export function refuse(socket: Duplex, status: number, message: string): void {
  const body = `${message}\n`;
  // The other side may never end its half.
  socket.once('finish', () => socket.destroy());
  socket.end(
    `HTTP/1.1 ${status} Refused\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
