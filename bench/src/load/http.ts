import { connect } from 'node:net';
import { Histogram } from '../stats.ts';
import type { HttpReport, HttpRequest } from './messages.ts';

/** Requests over kept connections, one at a time on each: a client that costs little beside the server. */

const idDigits = 12;

export async function runHttp(
  request: HttpRequest,
  window: (edge: 'begin' | 'end') => void,
): Promise<HttpReport> {
  const latency = new Histogram();
  let answered = 0;
  let refused = 0;
  let firstRefusal = '';
  let sent = 0;
  let over = false;
  const next = (): string => {
    const text = request.requests[sent++ % request.requests.length]!;
    return text.replace('@ID@', String(sent).padStart(idDigits, '0'));
  };
  const refuse = (why: string): void => {
    refused++;
    firstRefusal ||= why.slice(0, 300);
  };
  const sockets = Array.from({ length: request.connections }, () => {
    const socket = connect({ port: request.port, host: '127.0.0.1', noDelay: true });
    let head = Buffer.alloc(0);
    let begin = 0;
    const ask = (): void => {
      if (over) return;
      begin = performance.now();
      socket.write(next());
    };
    socket.on('connect', ask);
    socket.on('error', (error) => refuse(error.message));
    socket.on('data', (chunk) => {
      head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
      const end = head.indexOf('\r\n\r\n');
      if (end < 0) return;
      const headers = head.toString('latin1', 0, end);
      const length = Number(/\r\ncontent-length: *(\d+)/i.exec(headers)?.[1] ?? 0);
      if (head.length < end + 4 + length) return;
      if (headers.startsWith('HTTP/1.1 2')) answered++;
      else refuse(head.toString('utf8', 0, end + 4 + length));
      latency.record((performance.now() - begin) * 1_000);
      head = Buffer.alloc(0);
      ask();
    });
    return socket;
  });
  const delay = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));
  await delay(request.warmMs);
  latency.clear();
  answered = refused = 0;
  firstRefusal = '';
  window('begin');
  const cpu = process.cpuUsage();
  const begin = performance.now();
  await delay(request.windowMs);
  const seconds = (performance.now() - begin) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  const report = {
    seconds,
    answered,
    refused,
    firstRefusal,
    latency: latency.summary(),
    cpuMs: (user + system) / 1_000,
  };
  window('end');
  over = true;
  for (const socket of sockets) socket.destroy();
  return report;
}
