import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv4 } from 'node:net';

/** A name server on loopback, so that tests about names send no packet anywhere else. */

/** What it says of a name: its addresses, that there is no such name, or nothing; `aaaa` of IPv6 alone where that differs. */
export type Known = string[] | 'missing' | 'silent' | { a: Known; aaaa: Known };

export interface TestDns {
  /** For CHAT_DNS_SERVERS. */
  address: string;
  /** Names that are not here are missing. */
  names: Map<string, Known>;
  /** The names asked for so far, one entry a question about IPv4. */
  asked: string[];
  close(): Promise<void>;
}

const types = { 1: 'a', 28: 'aaaa' } as const;

export async function startDns(names: Record<string, Known> = {}): Promise<TestDns> {
  const known = new Map(Object.entries(names));
  const asked: string[] = [];
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const { name, type, end } = question(query);
    if (type === 'a') asked.push(name);
    let said = known.get(name) ?? 'missing';
    if (typeof said === 'object' && !Array.isArray(said)) said = said[type];
    if (said === 'silent') return;
    const addresses = Array.isArray(said) ? said.filter((a) => isIPv4(a) === (type === 'a')) : [];
    const head = Buffer.alloc(12);
    head.writeUInt16BE(query.readUInt16BE(0), 0);
    head.writeUInt16BE(said === 'missing' ? 0x8183 : 0x8180, 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(addresses.length, 6);
    const answers = addresses.map((address) => record(type === 'a' ? 1 : 28, address));
    socket.send(Buffer.concat([head, query.subarray(12, end), ...answers]), from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    names: known,
    asked,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}

function question(query: Buffer): { name: string; type: 'a' | 'aaaa'; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const type = types[query.readUInt16BE(at + 1) as keyof typeof types];
  return { name: labels.join('.').toLowerCase(), type, end: at + 5 };
}

/** An answer about the name of the question, which may not be kept. */
function record(type: number, address: string): Buffer {
  const data = isIPv4(address)
    ? Buffer.from(address.split('.').map(Number))
    : Buffer.from(full(address), 'hex');
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

function full(address: string): string {
  const [left = '', right] = address.split('::');
  const groups = (text: string | undefined) => (text ? text.split(':').map((g) => g.padStart(4, '0')) : []);
  const [first, last] = [groups(left), groups(right)];
  const middle = new Array<string>(8 - first.length - last.length).fill('0000');
  return [...first, ...(right === undefined ? [] : middle), ...last].join('');
}
