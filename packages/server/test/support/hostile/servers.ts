import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { BSON } from 'mongodb';

/** Servers of the four protocols that customers' databases speak, which answer what a test says: on loopback. */

export interface HostileServer {
  url: string;
  port: number;
  /** How many connections it has had. */
  connections(): number;
  close(): Promise<void>;
}

const serving = async (server: Server, open: Set<Socket>): Promise<Omit<HostileServer, 'url'>> => {
  let count = 0;
  server.on('connection', (socket: Socket) => {
    count += 1;
    open.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => open.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => count,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
};

/** A server of a protocol that is spoken in bytes. `speak` gets every connection. */
export async function startTcp(speak: (socket: Socket) => void): Promise<Omit<HostileServer, 'url'>> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    speak(socket);
  });
  return serving(server, open);
}

/** Calls `onData` for what arrives; the first time, the second time and so on. */
const turns = (socket: Socket, onData: (data: Buffer, turn: number) => void): void => {
  let turn = 0;
  socket.on('data', (data) => onData(data, turn++));
};

// PostgreSQL

/** A message of a PostgreSQL server; `length` is what it claims, if not the truth. */
export function pgMessage(type: string, body: Buffer, length = body.length + 4): Buffer {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(length, 1);
  return Buffer.concat([head, body]);
}
export const int16 = (value: number): Buffer => {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
};
export const int32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};

export const pgReady = Buffer.concat([pgMessage('R', int32(0)), pgMessage('Z', Buffer.from('I'))]);
export const pgColumn = (name: string, type: number): Buffer =>
  Buffer.concat([Buffer.from(`${name}\0`), int32(0), int16(0), int32(type), int16(-1), int32(-1), int16(0)]);

/** @param login the answer to the login; @param answer what any question is answered with. */
export async function startPostgresDouble(
  login: Buffer,
  answer: (socket: Socket, data: Buffer) => void = () => undefined,
): Promise<HostileServer> {
  const server = await startTcp((socket) =>
    turns(socket, (data, turn) => {
      if (turn === 0) socket.write(login);
      else answer(socket, data);
    }),
  );
  return { ...server, url: `postgres://u:p@127.0.0.1:${server.port}/db?sslmode=disable` };
}

// MySQL

/** A packet of a MySQL server. */
export function mysqlPacket(sequence: number, body: Buffer): Buffer {
  const head = Buffer.alloc(4);
  head.writeUIntLE(body.length, 0, 3);
  head[3] = sequence;
  return Buffer.concat([head, body]);
}
const mysqlGreeting = mysqlPacket(
  0,
  Buffer.concat([
    Buffer.from([10]),
    Buffer.from('8.0.30\0'),
    Buffer.from([1, 0, 0, 0]),
    Buffer.from('12345678\0'),
    // Protocol 4.1, secure connections, plugins; no compression, no TLS, an EOF after columns.
    Buffer.from([0xff, 0xf7 & ~0x08, 0x21, 0x02, 0x00, 0x08, 0x00, 21]),
    Buffer.alloc(10),
    Buffer.from('123456789012\0'),
    Buffer.from('mysql_native_password\0'),
  ]),
);
export const mysqlOk = Buffer.from([0, 0, 0, 2, 0, 0, 0]);
const counted = (text: string): Buffer => Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);
export const mysqlColumn = (name: string, type: number): Buffer =>
  Buffer.concat([
    ...['def', '', '', '', name, ''].map(counted),
    Buffer.from([0x0c, 33, 0, 0xff, 0xff, 0, 0, type, 0, 0, 0, 0, 0]),
  ]);

/** @param answer what the question with this number is answered with, logins not counted. */
export async function startMysqlDouble(
  answer: (socket: Socket, turn: number) => void,
): Promise<HostileServer> {
  const server = await startTcp((socket) => {
    socket.write(mysqlGreeting);
    turns(socket, (_data, turn) => {
      if (turn === 0) socket.write(mysqlPacket(2, mysqlOk));
      else answer(socket, turn - 1);
    });
  });
  return { ...server, url: `mysql://u:p@127.0.0.1:${server.port}/db?tls=false` };
}

// MongoDB

/** A reply of a MongoDB server to a request of either form. */
export function mongoReply(to: Buffer, body: object, claims?: { documents: number }): Buffer {
  const request = to.readInt32LE(4);
  const legacy = to.readInt32LE(12) === 2004;
  const document = Buffer.from(BSON.serialize(body));
  const rest = legacy
    ? [int32Le(8), Buffer.alloc(8), int32Le(0), int32Le(claims?.documents ?? 1), document]
    : [int32Le(0), Buffer.from([0]), document];
  const all = Buffer.concat(rest);
  return Buffer.concat([
    int32Le(all.length + 16),
    int32Le(1),
    int32Le(request),
    int32Le(legacy ? 1 : 2013),
    all,
  ]);
}
const int32Le = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return bytes;
};
/** The command in a request. */
export function mongoCommand(data: Buffer): Record<string, unknown> {
  const legacy = data.readInt32LE(12) === 2004;
  const at = legacy ? data.indexOf(0, 20) + 9 : 21;
  return BSON.deserialize(data.subarray(at, at + data.readInt32LE(at)));
}
export const mongoHello = {
  ismaster: true,
  isWritablePrimary: true,
  helloOk: true,
  maxBsonObjectSize: 16_777_216,
  ok: 1,
  maxMessageSizeBytes: 48_000_000,
  maxWriteBatchSize: 100_000,
  minWireVersion: 0,
  maxWireVersion: 21,
};

export async function startMongodbDouble(
  answer: (socket: Socket, data: Buffer) => void,
): Promise<HostileServer> {
  const server = await startTcp((socket) => turns(socket, (data) => answer(socket, data)));
  return { ...server, url: `mongodb://u:p@127.0.0.1:${server.port}/db?tls=false` };
}

// http

export async function startHttpDouble(answer: (request: { op: string }) => string): Promise<HostileServer> {
  const open = new Set<Socket>();
  const server = createHttpServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(answer(JSON.parse(text) as { op: string }));
    });
  });
  const started = await serving(server, open);
  return { ...started, url: `http://127.0.0.1:${started.port}/history` };
}
